"""JSON merge patches (RFC 7386)."""

from __future__ import annotations

from typing import Any


def merge_patch(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What turns one into the other; lists are replaced as a whole."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        known = before.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            inner = merge_patch(known, value)
            if inner:
                patch[key] = inner
        elif key not in before or known != value:
            patch[key] = value
    return patch


def with_merge_patch(before: Any, patch: Any) -> Any:
    """What a patch makes of a value; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = with_merge_patch(result.get(key), value)
    return result

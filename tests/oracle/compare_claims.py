"""What is the same answer about claims: allocations, what is written, and messages of CEL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mooring.api.quantity import parse_quantity

Answer = Mapping[str, Any]

_CEL = re.compile(r"(CEL compile error:|CEL runtime error:(?! no such key)).*", re.DOTALL)


_SPECIAL = "/<extended-resources>"  # the claim for extended resources


def without_cel(text: str) -> str:
    """A message without what a CEL implementation says in its own words."""
    return _CEL.sub(r"\1", text)


def claim_differences(expected: Answer, got: Answer) -> Iterator[str]:
    """What differs in `allocations`, `bind` and what PostFilter does to claims."""
    if expected.get("partial") or got.get("partial"):  # the oracle says nothing of what is written
        yield from _parts("allocations", _of_named_claims(expected), _of_named_claims(got))
        return
    yield from _parts("allocations", expected.get("allocations"), got.get("allocations"))
    yield from _parts("bind", expected.get("bind"), got.get("bind"))
    said, ours = expected.get("postFilter") or {}, got.get("postFilter") or {}
    yield from _parts(
        "postFilter.deallocatable", said.get("deallocatable"), ours.get("deallocatable")
    )
    if len(said.get("deallocatable") or ()) <= 1:
        yield from _parts("postFilter.writes", said.get("writes"), ours.get("writes"))


def _of_named_claims(answer: Answer) -> Answer:
    """The allocations without those of claims for extended resources."""
    named = {
        node: [one for one in found if not one["claim"].endswith(_SPECIAL)]
        for node, found in (answer.get("allocations") or {}).items()
    }
    return {node: found for node, found in named.items() if found}


def _parts(path: str, expected: Any, got: Any) -> Iterator[str]:
    """The first places where two values differ; nothing and empty are the same."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in sorted(expected.keys() | got.keys()):
            yield from _parts(f"{path}.{key}", expected.get(key), got.get(key))
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for place, (a, b) in enumerate(zip(expected, got, strict=True)):
            yield from _parts(f"{path}[{place}]", a, b)
    elif not _is_equal(path, expected, got):
        yield f"{path}: expected {json.dumps(expected)}, got {json.dumps(got)}"


def _is_equal(path: str, expected: Any, got: Any) -> bool:
    if expected == got or (not expected and not got):
        return True
    if not isinstance(expected, str) or not isinstance(got, str):
        return False
    if ".consumedCapacity." in path:
        return parse_quantity(expected) == parse_quantity(got)
    return without_cel(expected) == without_cel(got)

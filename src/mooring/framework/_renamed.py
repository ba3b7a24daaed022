"""Names of earlier versions of the contract, and their replacements.

A plugin that still uses one is refused at the start with the new name: if it were ignored, the
plugin would be slow, or its pods would be placed wrongly, without any error.
"""

from __future__ import annotations

from typing import Final

_DEPENDS_ON: Final = "write `depends_on = fw.NODE` or `fw.NODE_AND_PODS`"
_NORMALIZER: Final = "write `normalizer = fw.BEST_IS_100`, `fw.LEAST_IS_100` or `fw.MIN_MAX`"
_CACHE_KEY: Final = "write `cache_key(pod)`"

MEMBERS: Final[dict[str, str]] = {
    "scope": _DEPENDS_ON,
    "scope_of": f"{_DEPENDS_ON}, and `applies_to(pod)` if it has nothing to say for some pods",
    "part_of": _CACHE_KEY,
    "stamp": _CACHE_KEY,
    "steady": _CACHE_KEY,
    "by_extremes": _NORMALIZER,
}
"""Members of plugin classes."""

NAMES: Final[dict[str, str]] = {
    "Scope": _DEPENDS_ON,
    "steady": _CACHE_KEY,
    "normalize": _NORMALIZER,
    "NormalizeScore": f"inherit from `fw.Score` and {_NORMALIZER}, or define `normalize_score`",
    "NoArgs": "write `fw.Args`",
    "MIN_SCORE": "write 0",
}
"""Names of `mooring.framework`."""

"""Tolerations of taints, and the `key=value:Effect` notation."""

import re
from collections.abc import Collection, Iterable
from typing import Final

from mooring.api._names import is_label_value, is_qualified_name
from mooring.api.placement import Taint, Toleration
from mooring.api.quantity import INT64_MAX
from mooring.api.resource import DeviceTaint, DeviceToleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
EFFECTS: Final = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
_DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")  # as Go prints an int64


def tolerates(
    toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint, *, compares: bool = False
) -> bool:
    """As Toleration.ToleratesTaint: empty key and effect are wildcards; Equal compares values.

    The operators Lt and Gt match only if it `compares` numbers.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if compares and toleration.operator in ("Lt", "Gt"):
        found, limit = _integer(taint.value), _integer(toleration.value)
        if found is None or limit is None:
            return False
        return found < limit if toleration.operator == "Lt" else found > limit
    return toleration.operator == "Exists"


def _integer(text: str) -> int | None:
    value = int(text) if _DECIMAL.fullmatch(text) else None
    return value if value is not None and -INT64_MAX - 1 <= value <= INT64_MAX else None


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = (NO_SCHEDULE, NO_EXECUTE),
    *,
    compares: bool = False,
) -> Taint | None:
    """The first taint with one of these effects that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, compares=compares) for toleration in tolerations
        ):
            return taint
    return None


def taint_text(taint: Taint) -> str:
    """`key=value:Effect`, as `kubectl taint` writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def parse_taint(text: str) -> Taint:
    """Read `key=value:Effect` or `key:Effect`, as `kubectl taint` writes them."""
    label, colon, effect = text.rpartition(":")
    key, _, value = label.partition("=")
    if not colon or not key:
        raise ValueError(f"taint {text!r}: expected key=value:Effect or key:Effect")
    if effect not in EFFECTS:
        raise ValueError(f"taint {text!r}: effect must be one of {', '.join(EFFECTS)}")
    if not is_qualified_name(key):
        raise ValueError(f"taint {text!r}: {key!r} is not a valid key")
    if not is_label_value(value):
        raise ValueError(f"taint {text!r}: {value!r} is not a valid value")
    return Taint(key=key, value=value, effect=effect)

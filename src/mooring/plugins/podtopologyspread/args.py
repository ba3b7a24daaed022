"""The arguments of PodTopologySpread, with kube-scheduler's defaults and error messages."""

import json
from collections.abc import Iterator
from typing import Final

from msgspec.structs import force_setattr

import mooring.framework as fw
from mooring.api import core
from mooring.api.meta import LabelSelector, LabelSelectorRequirement
from mooring.api.selectors import Selector, SelectorError
from mooring.api.wellknown import HOSTNAME, ZONE

SYSTEM: Final = "System"
LIST: Final = "List"
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"


class DefaultConstraint(core.TopologySpreadConstraint, frozen=True, forbid_unknown_fields=True):
    """As in a pod, but unknown fields are refused, and the selector is found for each pod."""

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise ValueError("; ".join(problems))


class PodTopologySpreadArgs(fw.Args, frozen=True):
    """The constraints of pods that have none: the built-in ones (System), or these (List)."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = SYSTEM

    def __post_init__(self) -> None:
        if not self.defaulting_type:
            force_setattr(self, "defaulting_type", SYSTEM)
        if self.defaulting_type not in (SYSTEM, LIST):
            text = _unsupported(self.defaulting_type, (SYSTEM, LIST))
            raise ValueError(f"defaultingType: {text}")
        if self.defaulting_type == SYSTEM and self.default_constraints:
            text = f'Invalid value: "{SYSTEM}": when .defaultConstraints are not empty'
            raise ValueError(f"defaultingType: {text}")
        pairs = [(c.topology_key, c.when_unsatisfiable) for c in self.default_constraints]
        for index, (key, action) in enumerate(pairs):
            if (key, action) in pairs[:index]:
                text = f'Duplicate value: "{{{key}, {action}}}"'
                raise ValueError(f"defaultConstraints[{index}]: {text}")


def _problems(constraint: DefaultConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield f"maxSkew: Invalid value: {constraint.max_skew}: not in valid range (0, inf)"
    if not constraint.topology_key:
        yield "topologyKey: Required value: can not be empty"
    else:
        yield from _key_problems(constraint.topology_key)
    action = constraint.when_unsatisfiable
    if not action:
        yield "whenUnsatisfiable: Required value: can not be empty"
    elif action not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        yield f"whenUnsatisfiable: {_unsupported(action, (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY))}"
    if constraint.label_selector is not None:
        text = "constraint must not define a selector, as they deduced for each pod"
        yield f"labelSelector: Forbidden: {text}"


def _key_problems(key: str) -> Iterator[str]:
    exists = LabelSelectorRequirement(key=key, operator="Exists")
    try:
        Selector.from_label_selector(LabelSelector(match_expressions=(exists,)))
    except SelectorError as error:
        yield f"topologyKey: {str(error).removeprefix('key: ')}"


def _unsupported(value: str, choices: tuple[str, ...]) -> str:
    listed = ", ".join(f'"{choice}"' for choice in choices)
    return f"Unsupported value: {json.dumps(value)}: supported values: {listed}"


SYSTEM_CONSTRAINTS: Final = (
    DefaultConstraint(topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    DefaultConstraint(topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5),
)

"""What PodTopologySpread accepts as arguments, and what it says to the rest."""

from typing import Any

import pytest

from mooring.errors import ConfigError
from mooring.plugins.podtopologyspread.args import SYSTEM_CONSTRAINTS
from mooring.plugins.podtopologyspread.plugin import PodTopologySpread
from mooring.testing import build
from mooring.testing.builders import HOSTNAME, ZONE

Json = dict[str, Any]


def constraint(**other: Any) -> Json:
    return {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"} | other


def complaint_about(args: Json) -> str:
    with pytest.raises(ConfigError) as caught:
        build(PodTopologySpread, **args)
    (problem,) = caught.value.problems
    return f"{problem.path}: {problem.message}".removeprefix("pluginConfig[PodTopologySpread].args")


@pytest.mark.parametrize("args", [{}, {"defaultingType": ""}, {"defaultingType": "System"}])
def test_spreads_by_host_and_zone_unless_told_otherwise(args: Json) -> None:
    assert build(PodTopologySpread, **args).args.defaulting_type == "System"
    shown = [(c.topology_key, c.max_skew, c.when_unsatisfiable) for c in SYSTEM_CONSTRAINTS]
    assert shown == [(HOSTNAME, 3, "ScheduleAnyway"), (ZONE, 5, "ScheduleAnyway")]


def test_takes_a_list_instead_which_may_be_empty() -> None:
    given = [constraint(), constraint(whenUnsatisfiable="ScheduleAnyway", minDomains=2)]
    args = build(PodTopologySpread, defaulting_type="List", default_constraints=given).args
    assert [c.topology_key for c in args.default_constraints] == ["rack", "rack"]
    assert build(PodTopologySpread, defaulting_type="List").args.default_constraints == ()


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"maxSkew": 0}, "maxSkew: Invalid value: 0: not in valid range (0, inf)"),
        ({"topologyKey": ""}, "topologyKey: Required value: can not be empty"),
        ({"whenUnsatisfiable": ""}, "whenUnsatisfiable: Required value: can not be empty"),
        (
            {"whenUnsatisfiable": "Maybe"},
            'whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule",'
            ' "ScheduleAnyway"',
        ),
        (
            {"labelSelector": {}},
            "labelSelector: Forbidden: constraint must not define a selector, as they deduced for"
            " each pod",
        ),
        (
            {"maxSkew": -1, "topologyKey": ""},
            "maxSkew: Invalid value: -1: not in valid range (0, inf); topologyKey: Required value:"
            " can not be empty",
        ),
    ],
)
def test_says_what_is_wrong_with_a_constraint(wrong: Json, complaint: str) -> None:
    args = {"defaultingType": "List", "defaultConstraints": [constraint(), constraint(**wrong)]}
    assert complaint_about(args) == f".defaultConstraints[1]: {complaint}"


def test_refuses_a_topology_key_that_is_no_label() -> None:
    given = [constraint(topologyKey="my rack")]
    told = complaint_about({"defaultingType": "List", "defaultConstraints": given})
    start = '.defaultConstraints[0]: topologyKey: Invalid value: "my rack": name part must consist'
    assert told.startswith(start)


def test_refuses_constraints_beside_the_system_ones() -> None:
    told = complaint_about({"defaultConstraints": [constraint()]})
    expected = 'defaultingType: Invalid value: "System": when .defaultConstraints are not empty'
    assert told == f": {expected}"


def test_knows_two_ways_of_defaulting() -> None:
    told = complaint_about({"defaultingType": "Guess"})
    expected = 'Unsupported value: "Guess": supported values: "System", "List"'
    assert told == f": defaultingType: {expected}"


def test_refuses_the_same_key_and_action_twice() -> None:
    given = [constraint(), constraint(maxSkew=4)]
    told = complaint_about({"defaultingType": "List", "defaultConstraints": given})
    assert told == ': defaultConstraints[1]: Duplicate value: "{rack, DoNotSchedule}"'


def test_refuses_misspelt_fields() -> None:
    given = [constraint(maxskew=1)]
    assert "unknown field" in complaint_about(
        {"defaultingType": "List", "defaultConstraints": given}
    )

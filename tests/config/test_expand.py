from collections.abc import Callable

import pytest
from tests.config.plugin_refs import chosen, refs

from mooring.config.defaults import DEFAULT_MULTIPOINT, merge_plugins
from mooring.config.expand import enabled_names, expand_point, interface_name
from mooring.config.types import POINTS, Plugins, PluginSet
from mooring.errors import ConfigError, Problem

# Which default plugins implement which points, in Kubernetes 1.36.
IMPLEMENTED = {
    "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption",
    "queueSort": "PrioritySort",
    "preFilter": "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits "
    "VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
    "NodeDeclaredFeatures",
    "filter": "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
    "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread "
    "InterPodAffinity DynamicResources NodeDeclaredFeatures",
    "postFilter": "DynamicResources DefaultPreemption",
    "preScore": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
    "InterPodAffinity NodeResourcesBalancedAllocation",
    "score": "TaintToleration:3 NodeAffinity:2 NodeResourcesFit:1 VolumeBinding:1 "
    "PodTopologySpread:2 InterPodAffinity:2 DynamicResources:2 "
    "NodeResourcesBalancedAllocation:1 ImageLocality:1",
    "reserve": "VolumeBinding DynamicResources",
    "permit": "",
    "preBind": "VolumeBinding DynamicResources",
    "bind": "DefaultBinder",
    "postBind": "",
    "placementGenerate": "",
    "placementScore": "NodeResourcesFit:1",
}


def only(names: str) -> Callable[[str], bool]:
    """Only these plugins implement the point."""
    return set(names.split()).__contains__


def everything(name: str) -> bool:
    return True


def with_defaults(**user: PluginSet) -> Plugins:
    defaults = Plugins(multi_point=PluginSet(enabled=DEFAULT_MULTIPOINT))
    return merge_plugins(defaults, Plugins(**user))


@pytest.mark.parametrize("point", POINTS)
def test_orders_the_defaults_as_kubernetes_does(point: str) -> None:
    expected = refs(IMPLEMENTED[point])
    implements = {ref.name for ref in expected}.__contains__
    assert expand_point(with_defaults(), point, implements) == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (chosen(), "A B C"),
        (chosen("X"), "A B C X"),
        (chosen("X Y"), "A B C X Y"),
        (chosen("C"), "C A B"),
        (chosen("C A"), "C A B"),
        (chosen("X C"), "C A B X"),
        (chosen("X C Y B"), "C B A X Y"),
        (chosen(disabled="B"), "A C"),
        (chosen(disabled="*"), ""),
        (chosen("X C", disabled="*"), "X C"),
        (chosen("B", disabled="B"), "A C B"),
        (chosen("C B A", disabled="A B C"), "C B A"),
        (chosen("C B A", disabled="*"), "C B A"),
        (chosen(disabled="Nobody"), "A B C"),
    ],
)
def test_expands_multi_point_into_a_point(filters: PluginSet, expected: str) -> None:
    plugins = Plugins(multi_point=chosen("A NotAFilter B C"), filter=filters)
    assert expand_point(plugins, "filter", only("A B C X Y")) == refs(expected)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (chosen(), "A:3 B:1"),
        (chosen("A:7"), "A:7 B:1"),
        (chosen("A"), "A:1 B:1"),
        (chosen("B:5"), "B:5 A:3"),
        (chosen("X"), "A:3 B:1 X:1"),
        (chosen("X:4", disabled="A"), "B:1 X:4"),
        (chosen("A:9", disabled="A"), "B:1 A:9"),
        (chosen("B:2", disabled="*"), "B:2"),
    ],
)
@pytest.mark.parametrize("point", ["score", "placementScore"])
def test_weighs_scores_by_the_points_own_entry_first(
    point: str, scores: PluginSet, expected: str
) -> None:
    plugins = Plugins.of_points({"multiPoint": chosen("A:3 B"), point: scores})
    assert expand_point(plugins, point, everything) == refs(expected)


def test_gives_no_weights_where_nothing_is_weighed() -> None:
    plugins = Plugins(multi_point=chosen("A:3"), filter=chosen("B:2"))
    assert expand_point(plugins, "filter", everything) == refs("A B")


def test_disables_a_default_for_scoring_only() -> None:
    plugins = with_defaults(score=chosen(disabled="TaintToleration"))
    implements = only("TaintToleration NodeAffinity")
    assert expand_point(plugins, "score", implements) == refs("NodeAffinity:2")
    assert expand_point(plugins, "filter", implements) == refs("TaintToleration NodeAffinity")


def test_reorders_defaults_that_are_disabled_and_enabled_again() -> None:
    again = chosen("NodeAffinity:2 TaintToleration:5", disabled="TaintToleration NodeAffinity")
    plugins = with_defaults(multi_point=again)
    implements = only("TaintToleration NodeAffinity NodeName")
    assert expand_point(plugins, "filter", implements) == refs(
        "NodeName NodeAffinity TaintToleration"
    )
    assert expand_point(plugins, "score", implements)[1:] == refs(
        "NodeAffinity:2 TaintToleration:5"
    )


def test_runs_only_what_is_listed_once_everything_is_disabled() -> None:
    plugins = with_defaults(multi_point=chosen("Headroom", disabled="*"))
    assert expand_point(plugins, "filter", everything) == refs("Headroom")


def problems_of(plugins: Plugins, implements: Callable[[str], bool]) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        expand_point(plugins, "filter", implements, "profiles[0].plugins")
    return caught.value.problems


def test_refuses_a_plugin_listed_twice_in_multi_point() -> None:
    plugins = Plugins(multi_point=chosen("A B A"))
    place = "profiles[0].plugins.multiPoint.enabled[2]"
    message = 'plugin "A" already registered as "FilterPlugin"'
    assert problems_of(plugins, everything) == (Problem(place, message),)
    assert expand_point(plugins, "filter", only("B")) == refs("B")


def test_refuses_a_plugin_listed_twice_at_a_point() -> None:
    plugins = Plugins(multi_point=chosen("A"), filter=chosen("A B B"))
    place = "profiles[0].plugins.filter.enabled[2]"
    message = 'plugin "B" already registered as "FilterPlugin"'
    assert problems_of(plugins, everything) == (Problem(place, message),)


def test_refuses_a_plugin_at_a_point_it_does_not_implement() -> None:
    plugins = Plugins(multi_point=chosen("A A"), filter=chosen("S"))
    assert problems_of(plugins, only("A")) == (
        Problem(
            "profiles[0].plugins.filter.enabled[0]",
            'plugin "S" does not extend FilterPlugin plugin',
        ),
        Problem(
            "profiles[0].plugins.multiPoint.enabled[1]",
            'plugin "A" already registered as "FilterPlugin"',
        ),
    )


def test_lists_every_enabled_name_once() -> None:
    plugins = Plugins(
        multi_point=chosen("A B", disabled="Z"), score=chosen("C A"), pre_enqueue=chosen("D")
    )
    assert enabled_names(plugins) == ("A", "B", "D", "C")


def test_names_the_interfaces_as_kubernetes_does() -> None:
    assert interface_name("preFilter") == "PreFilterPlugin"
    assert interface_name("bind") == "BindPlugin"


def test_knows_every_extension_point_that_has_a_set() -> None:
    assert set(IMPLEMENTED) == set(POINTS)
    assert len(POINTS) == 14
    with pytest.raises(KeyError):
        Plugins().at("normalizeScore")

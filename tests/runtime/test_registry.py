import re
import sys
import types
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from tests.unshowable import RAISES_PARTING

import mooring.framework as fw
from mooring.errors import ConfigError
from mooring.framework.plugin import Base
from mooring.plugins.nodename import NodeName
from mooring.runtime import registry as registries
from mooring.runtime.registry import Registry, contract_faults


class Picky(fw.Filter):
    name = "Picky"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK


class Scoring(fw.Score):
    name = "Scoring"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


def make(name: str = "Made", base: type[Base] = Picky, **members: Any) -> type[Base]:
    return type("Made", (base,), {"name": name, "__module__": __name__, **members})


def problems(*plugins: type[Base]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        Registry.discover(plugins)
    return [str(problem) for problem in caught.value.problems]


def test_knows_our_own_plugins_by_their_entry_points() -> None:
    registry = Registry.discover()
    assert {"DefaultBinder", "NodeName", "NodeResourcesFit", "PrioritySort"} <= registry.names
    assert registry.get("NodeName") is NodeName


def test_knows_classes_handed_over_in_code() -> None:
    registry = Registry.discover([Picky])
    assert registry.get("Picky") is Picky


def test_the_same_class_may_come_in_by_several_doors() -> None:
    registry = Registry.discover([Picky, Picky, NodeName])
    assert registry.get("NodeName") is NodeName
    assert registry.add_path(f"{__name__}:Picky") == "Picky"
    assert registry.add_path("mooring.plugins.nodename:NodeName") == "NodeName"


def test_two_classes_with_one_name_are_a_clash() -> None:
    one, two = make("Twin"), make("Twin")
    [text] = problems(one, two)
    assert text.startswith("plugin Twin: a plugin named Twin already exists: ")


def test_a_class_cannot_take_the_name_of_an_installed_one() -> None:
    [text] = problems(make("NodeName"))
    assert "a plugin named NodeName already exists: mooring.plugins.nodename:NodeName" in text
    assert f"{__name__}:Made" in text


def test_reports_every_clash_at_once() -> None:
    nameless = type("Nameless", (fw.Filter,), {"__module__": __name__})
    assert len(problems(make("NodeName"), nameless, make("NodePorts"))) == 3


def test_a_path_cannot_take_the_name_of_another_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("shadow")
    vars(module)["Mine"] = make("NodeName")
    monkeypatch.setitem(sys.modules, "shadow", module)
    registry = Registry.discover()
    with pytest.raises(LookupError, match="a plugin named NodeName already exists: it comes from"):
        registry.add_path("shadow:Mine")


def test_a_name_nobody_has_does_not_exist() -> None:
    with pytest.raises(LookupError, match='plugin "Nobody" does not exist'):
        Registry.discover().get("Nobody")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("no.such.module:Thing", "can't import no.such.module:Thing: ModuleNotFoundError: "),
        ("mooring.plugins.nodename:Nothing", "AttributeError: .*'Nothing'"),
        ("mooring.plugins.nodename:", "can't import mooring.plugins.nodename:: "),
        (":Thing", "can't import :Thing: ValueError"),
        ("json:loads", "is not a plugin class"),
        ("mooring.framework:Filter", "it needs a `name`; it lacks filter()"),
        ("mooring.framework:Plugin", "it serves no extension point"),
    ],
)
def test_a_path_that_leads_nowhere_says_why(path: str, text: str) -> None:
    with pytest.raises(LookupError, match=text.replace("()", r"\(\)")):
        Registry.discover().add_path(path)


def installed(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> Registry:
    """A registry on a machine where exactly these entry points are installed."""
    found = [EntryPoint(name, value, registries.GROUP) for name, value in points]
    monkeypatch.setattr(registries, "_installed", lambda path: found)
    return Registry.discover()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("no.such.module:Thing", "plugin Odd from no.such.module:Thing can't be loaded: Module"),
        ("mooring.plugins.nodename:NodeName", "its name is 'NodeName', registered as 'Odd'"),
        ("json:loads", "is not a plugin class"),
        ("json", "is not a plugin class"),
    ],
)
def test_an_entry_point_that_does_not_keep_its_promise_is_refused_when_it_is_used(
    value: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = installed(monkeypatch, ("Odd", value))
    assert registry.names == {"Odd"}
    with pytest.raises(LookupError, match=text):
        registry.get("Odd")


def test_a_module_that_breaks_with_words_that_exit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parting.py").write_text(RAISES_PARTING)
    monkeypatch.syspath_prepend(tmp_path)
    text = "Parting: <Parting that can't be shown>"
    with pytest.raises(LookupError, match=f"can't import parting:Thing: {text}"):
        Registry.discover().add_path("parting:Thing")
    with pytest.raises(LookupError, match=f"can't be loaded: {text}"):
        installed(monkeypatch, ("Odd", "parting:Thing")).get("Odd")


def test_two_distributions_cannot_offer_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="already exists: acme:One and other:Two"):
        installed(monkeypatch, ("X", "acme:One"), ("X", "other:Two"))


async def waits(self: Any, state: Any, pod: Any, node_name: str) -> fw.Status:
    return fw.OK


def returns(self: Any, state: Any, pod: Any, node_name: str) -> fw.Status:
    return fw.OK


@pytest.mark.parametrize(
    ("base", "members", "fault"),
    [
        (fw.Filter, {"filter": lambda self, pod: fw.OK}, "filter() must take (self, state, pod,"),
        (fw.Filter, {"filter": lambda self, a, b, c, d: fw.OK}, "filter() must take (self, "),
        (fw.Filter, {"filter": None}, "filter must be a method"),
        (fw.Filter, {"filter": property(lambda self: 1)}, "filter must be a method"),
        (fw.Reserve, {"reserve": returns}, "it lacks unreserve()"),
        (fw.Score, {"Score": returns}, "it lacks score(); is Score() meant to be it?"),
        (fw.PreFilter, {"PreFilter": returns}, "it lacks pre_filter(); is PreFilter() meant"),
        (Picky, {"__init__": lambda self: None}, "__init__() must take (self, args, handle)"),
        (fw.Reserve, {"reserve": waits, "unreserve": returns}, "reserve() must be a plain `def`"),
        (fw.Bind, {"bind": returns}, "bind() must be `async def`"),
        (fw.PreBind, {"pre_bind": returns}, "pre_bind() must be `async def`"),
        (fw.PostBind, {"post_bind": returns}, "post_bind() must be `async def`"),
        (
            Picky,
            {"hint": lambda self, event: True},
            "hint() must take (self, event, pod, old, new)",
        ),
        (Picky, {"close": lambda self, code: None}, "close() must take (self)"),
        (Picky, {"wakes_on": [fw.Event.NODE_ADDED]}, "wakes_on must be a tuple of ClusterEvents"),
        (Picky, {"wakes_on": ("Node",)}, "wakes_on must be a tuple of ClusterEvents"),
        (Picky, {"depends_on": "node"}, "its depends_on must be NODE or NODE_AND_PODS of"),
        (Scoring, {"normalizer": "best"}, "its normalizer must be BEST_IS_100, LEAST_IS_100 or"),
        (
            Scoring,
            {"normalizer": fw.MIN_MAX, "normalize_score": lambda self, a, b, c, scores: scores},
            "it declares a normalizer and has normalize_score(): only one of them can count",
        ),
        (Picky, {"name": ""}, "it needs a `name`"),
        (Picky, {"name": 7}, "it needs a `name`"),
        (Base, {}, "it serves no extension point"),
    ],
)
def test_refuses_a_class_that_does_not_keep_the_contract(
    base: type[Base], members: dict[str, Any], fault: str
) -> None:
    candidate = make(**{"base": base, **members})
    assert any(fault in found for found in contract_faults(candidate))


def test_refuses_arguments_that_are_no_args() -> None:
    class Plain:
        node: str = "a"

    class Wrong(fw.Plugin[Plain], fw.Score):  # type: ignore[type-var]  # what is tested
        name = "Wrong"

        def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
            return 0

    (fault,) = contract_faults(Wrong)
    assert fault.startswith(
        "Plugin[Plain]: the arguments must be a subclass of mooring.framework.A"
    )


@pytest.mark.parametrize(
    "members",
    [
        {"__init__": lambda self, args, handle, more=None: None},
        {"filter": lambda self, *anything: fw.OK},
        {"filter": lambda self, a, b, c, extra=None: fw.OK},
        {"filter": staticmethod(lambda state, pod, node: fw.OK)},
        {"wakes_on": ()},
        {"wakes_on": None},
    ],
)
def test_accepts_what_can_be_called_as_the_contract_says(members: dict[str, Any]) -> None:
    assert contract_faults(make(**members)) == []


OLD_WORDS = {
    "scope": "depends_on = fw.NODE",
    "scope_of": "applies_to",
    "part_of": "cache_key(pod)",
    "stamp": "cache_key(pod)",
    "steady": "cache_key(pod)",
    "by_extremes": "normalizer = fw.BEST_IS_100",
}


def test_refuses_every_old_word_with_the_new_one_in_one_message() -> None:
    class Old(Scoring):
        scope = "node"
        stamp = part_of = lambda self, pod: None

    class Older(Old):
        name = "Older"
        by_extremes = True
        steady = scope_of = None

    with pytest.raises(LookupError) as caught:
        Registry.discover([Older]).get("Older")
    for old, new in OLD_WORDS.items():
        assert re.search(rf"Older has `{old}`: [^;]*{re.escape(new)}", str(caught.value))


def test_old_words_are_free_where_they_never_declared_anything() -> None:
    made = make(base=fw.PostBind, post_bind=waits, scope="cluster", stamp=lambda self: 0)
    assert contract_faults(made) == []


def test_names_all_faults_of_a_class() -> None:
    faults = contract_faults(make(name="", base=fw.Reserve, reserve=waits))
    assert len(faults) == 3

"""The table of verbs, from which both sides derive what they know of a verb."""

from typing import Any

import msgspec
import pytest

from mooring import config as cfg
from mooring.api.codec import encode
from mooring.extender import Extender
from mooring.extender.calling.connecting import documents_for
from mooring.extender.serving.functions import FunctionPlugin
from mooring.extender.serving.plugins import SERVED
from mooring.extender.serving.server import PATHS
from mooring.extender.wire import PREEMPT, VERBS, Verb
from mooring.testing import pod

every_verb = pytest.mark.parametrize("verb", VERBS, ids=[verb.name for verb in VERBS])


@every_verb
def test_a_configuration_says_where_each_verb_is_served(verb: Verb[Any, Any]) -> None:
    assert verb.path_at(cfg.Extender()) == ""
    entry = msgspec.convert({f"{verb.name}Verb": "x/y"}, cfg.Extender)
    assert verb.path_at(entry) == "x/y"
    assert [other.name for other in VERBS if other.path_at(entry)] == [verb.name]


@every_verb
def test_a_function_can_answer_each_verb(verb: Verb[Any, Any]) -> None:
    extender = Extender()

    def answer(*args: object) -> bool:
        return True

    getattr(extender, verb.name)(answer)
    (plugin,) = extender.plugins
    assert issubclass(plugin, FunctionPlugin)
    assert plugin.verb is verb
    assert plugin.function is answer
    assert issubclass(plugin, verb.points) or verb is PREEMPT


@every_verb
def test_the_columns_agree_with_the_payloads(verb: Verb[Any, Any]) -> None:
    fields = getattr(verb.result, "__struct_fields__", ())
    assert verb.says_errors == ("error" in fields)
    assert verb.sends_nodes == ("nodes" in verb.args.__struct_fields__)
    assert verb.sends_running_pods == ("node_name_to_victims" in verb.args.__struct_fields__)


def test_paths_are_those_of_the_verbs_and_one_of_old_configurations() -> None:
    paths = {"/filter", "/prioritize", "/priority", "/preempt", "/bind"}
    assert set(PATHS) == paths
    assert PATHS["/priority"] is PATHS["/prioritize"]


def test_an_extender_serves_the_points_of_a_decision_and_those_of_verbs() -> None:
    names = {"PreFilter", "Filter", "PreScore", "Score", "PostFilter", "Bind"}
    assert {point.__name__ for point in SERVED} == names


@pytest.mark.parametrize(
    ("verb", "keeps_nodes", "keeps_running_pods"),
    [
        ("filterVerb", True, False),
        ("prioritizeVerb", True, False),
        ("preemptVerb", False, True),
        ("bindVerb", False, False),
    ],
)
def test_only_what_an_extender_is_sent_in_full_is_kept(
    verb: str, keeps_nodes: bool, keeps_running_pods: bool
) -> None:
    for capable in (False, True):
        entry = msgspec.convert({"nodeCacheCapable": capable, verb: "x"}, cfg.Extender)
        documents = documents_for([entry])
        running = pod("p", on="n").api
        assert (documents.nodes is not None) == (keeps_nodes and not capable)
        assert documents.pods is not None
        documents.pods.put(running, msgspec.Raw(encode(running)))
        is_kept = documents.pods.get(running.metadata.uid) is not None
        assert is_kept == (keeps_running_pods and not capable)

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mooring
import mooring.framework
import mooring.testing
from mooring.framework import Nodes

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "plugins.md"

# An addition to one of these two lists is a decision: authors will depend on it.
FRAMEWORK = [
    "BEST_IS_100",
    "LEAST_IS_100",
    "MAX_SCORE",
    "MIN_MAX",
    "NODE",
    "NODE_AND_PODS",
    "OK",
    "SKIP",
    "Action",
    "Args",
    "Bind",
    "BoolArray",
    "Candidate",
    "ClusterEvent",
    "Code",
    "CycleState",
    "Edit",
    "Event",
    "Fact",
    "Failed",
    "Filter",
    "Handle",
    "IntArray",
    "Node",
    "Nodes",
    "Nominate",
    "OnlyNodes",
    "Permit",
    "Plugin",
    "Pod",
    "PostBind",
    "PostFilter",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "PreScore",
    "QueueSort",
    "QueuedPod",
    "Reserve",
    "Score",
    "StateKey",
    "Status",
    "Verdicts",
    "Wait",
]
NODES = [
    "allocatable",
    "by_taints",
    "count_pods",
    "count_pods_by",
    "get",
    "has_taints",
    "image_spread",
    "index_of",
    "label_codes",
    "label_count",
    "label_values",
    "matching",
    "meeting",
    "names",
    "nonzero_requested",
    "pod_counts",
    "port_taken",
    "requested",
    "spare",
    "take",
    "unschedulable",
    "with_image",
]
INHERITED = ["count", "index"]  # from Sequence


def test_offers_exactly_these_names() -> None:
    assert mooring.__all__ == ["Scheduler", "Simulation", "__version__"]
    assert all(hasattr(mooring, name) for name in mooring.__all__)


def test_the_contract_has_exactly_these_names() -> None:
    assert mooring.framework.__all__ == FRAMEWORK
    assert len(FRAMEWORK) <= 44


def test_nodes_has_exactly_these_members() -> None:
    public = {name for name in dir(Nodes) if not name.startswith("_")}
    assert sorted(public) == sorted(NODES + INHERITED)
    assert len(public) <= 24


def test_the_reference_has_every_name_of_the_contract() -> None:
    text = re.sub(r"^```.*?^```$", "", REFERENCE.read_text(encoding="utf-8"), flags=re.M | re.S)
    code = " ".join(re.findall(r"`([^`]+)`", text))
    words = set(re.findall(r"\w+", code))
    assert set(FRAMEWORK) - words == set()
    assert set(NODES) - words == set()


def test_an_old_name_says_what_to_write_instead() -> None:
    for name, word in (
        ("Scope", "depends_on = fw.NODE"),
        ("NormalizeScore", "normalizer = fw.BEST_IS_100"),
        ("normalize", "normalizer = fw.BEST_IS_100"),
    ):
        with pytest.raises(AttributeError, match=re.escape(word)):
            getattr(mooring.framework, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'Nothing'$"):
        mooring.framework.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_keeps_what_it_exports_in_order_and_present() -> None:
    for module in (mooring.framework, mooring.testing):
        assert len(module.__all__) == len(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)


def test_does_not_load_numpy_for_the_help_text() -> None:
    code = "import sys, mooring.cli; sys.exit('numpy' in sys.modules or 'msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Class names that two modules of src have, on purpose: an API kind and what a plugin is given, a
# protocol and its implementation, or two products of which users import both.
TAKEN_TWICE = {
    "Event",  # the API kind, and the events a plugin waits for
    "Extender",  # an entry of the configuration, and what a user's functions make up
    "Node",  # the API kind, and the view that plugins get
    "NodeAffinity",  # the API type, and the plugin
    "Options",  # of a controller, and of an extender that is served
    "Pod",  # the API kind, and what plugins get
    "RecordedEvent",  # of a simulation, and of a plugin in a test
    "Recorder",  # of plugins, and of controllers
    "Requeue",  # what an event means for a pod, and what a controller asks for
    "Runner",  # of PreEnqueue and PostFilter, and of a controller
    "WaitingPod",  # the protocol, and the one behind it
    "WaitingPods",
}


def test_no_other_class_name_is_taken_twice() -> None:
    seen: dict[str, set[Path]] = {}
    for path in sorted(Path(mooring.__file__).parent.rglob("*.py")):
        for name in re.findall(
            r"^class ([A-Z]\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            seen.setdefault(name, set()).add(path)
    assert {name for name, paths in seen.items() if len(paths) > 1} == TAKEN_TWICE

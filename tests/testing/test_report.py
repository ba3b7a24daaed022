"""What `check_plugin(…, report=print)` says. No test looks at how large a factor is."""

import re

import pytest
from tests.testing import declarations
from tests.testing.headroom import Headroom

import mooring.framework as fw
from mooring.api import core
from mooring.framework.plugin import Base
from mooring.testing import Examples, check_plugin, node

FEW = Examples(seeds=(0, 5, 9))
DECLARE_NODE = r"`depends_on = fw\.NODE` is true in all examples, and would make it [\d.]+x cheaper"


def report_of(plugin: type[Base], examples: Examples = FEW) -> str:
    said: list[str] = []
    check_plugin(plugin, examples=examples, report=said.append)
    (text,) = said
    return text


class ByDisk(fw.Score):
    """Declares nothing."""

    name = "ByDisk"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if node.labels.get("disk") == "ssd" else 0


class ByRack(fw.Score):
    """Reads a label that no random node has."""

    name = "ByRack"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if node.labels.get("rack") == "a1" else 0


class FewestPods(fw.Score):
    """Normalises by a method what could be declared."""

    name = "FewestPods"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return node.pod_count

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return fw.LEAST_IS_100.normalize(scores)


class ReadsMuch(fw.PreFilter, fw.Filter):
    """Reads in every way."""

    name = "ReadsMuch"
    wakes_on = ()
    reads = (core.Namespace,)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        self.handle.clock.now()
        self.handle.random.random()
        self.handle.objects.get(core.Namespace, pod.namespace)
        return fw.OK if sum(len(one.pods) for one in nodes) >= 0 else fw.SKIP

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        assert isinstance(pod, fw.Pod)
        is_meant = [
            "disk" in pod.spec.node_selector,
            pod.api.metadata.labels.get("app") == "web",
            node.spare("cpu") < pod.requests("cpu"),
            len(self.handle.nodes.names) > 1,
            "pool" in node.labels,
        ]
        return declarations.NOT_HERE if all(is_meant) else fw.OK


def test_says_what_is_read_and_what_could_be_declared() -> None:
    reading, *proposals = report_of(ByDisk).splitlines()
    assert reading == "ByDisk was seen to read node.labels['disk']."
    assert re.match(DECLARE_NODE + r" here \(100 pods alike on 500 nodes\)\.$", proposals[0])
    assert proposals[1].startswith(
        "`def cache_key(self, pod): return None` is true in all examples"
    )


def test_proposes_no_more_than_is_true() -> None:
    text = report_of(FewestPods)
    assert "`depends_on = fw.NODE` " not in text
    assert "`depends_on = fw.NODE_AND_PODS` is true" in text
    assert "`normalizer = fw.LEAST_IS_100` instead of normalize_score()" in text
    assert "BEST_IS_100" not in text


@pytest.mark.parametrize("plugin", [declarations.Undeclared, declarations.BySpread])
def test_proposes_nothing_where_nothing_more_is_true(plugin: type[Base]) -> None:
    assert report_of(plugin).endswith(
        "Nothing more was found that it could declare and that would help."
    )


def test_reads_columns_as_well() -> None:
    reading = report_of(Headroom).splitlines()[0]
    read = "nodes.allocatable('cpu'), nodes.spare('cpu'), pod.requests('cpu')"
    assert reading == f"Headroom was seen to read {read}."


def test_proposes_nothing_for_labels_that_no_example_has() -> None:
    assert "No example has node.labels['rack']: add Examples" in report_of(ByRack)
    racks = [node("one", labels={"rack": "a1"}), node("two", labels={"rack": "b2"})]
    assert re.search(DECLARE_NODE, report_of(ByRack, Examples(seeds=range(4), nodes=racks)))


def test_names_everything_that_is_read_as_an_author_would_write_it() -> None:
    reading = report_of(ReadsMuch).splitlines()[0]
    read = set(reading.removeprefix("ReadsMuch was seen to read ").removesuffix(".").split(", "))
    assert read == {
        "handle.clock.now()",
        "handle.nodes.names",
        "handle.objects.get(Namespace)",
        "handle.random.random()",
        "node.labels['pool']",
        "node.spare('cpu')",
        "nodes[…].pods",
        "pod.api.metadata.labels['app']",
        "pod.namespace",
        "pod.requests('cpu')",
        "pod.spec.node_selector['disk']",
    }


def test_says_nothing_of_a_plugin_that_fails_a_check() -> None:
    said: list[str] = []
    with pytest.raises(AssertionError):
        check_plugin(declarations.CountsPods, examples=FEW, report=said.append)
    assert said == []


def test_has_nothing_to_say_of_a_plugin_that_takes_no_part_in_decisions() -> None:
    class Gate(fw.PreEnqueue):
        name = "Gate"
        wakes_on = ()

        def pre_enqueue(self, pod: fw.Pod) -> fw.Status:
            return fw.OK

    assert report_of(Gate) == "Gate takes no part in decisions: there is nothing to declare."


def test_admits_that_all_nodes_got_the_same_answer() -> None:
    class Same(fw.Score):
        name = "Same"

        def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
            return 7

    assert report_of(Same).endswith("the same answer: add Examples that differ.")

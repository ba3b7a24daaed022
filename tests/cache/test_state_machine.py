"""Events in any order: after each of them the columns equal what plain dictionaries say."""

from collections.abc import Callable, Hashable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.cache import model
from tests.cache.model import GPU, LABEL_KEYS, RESOURCES, Model, NodeFacts, PodFacts, Sums
from tests.cache.strategies import IMAGES, NODE_NAMES, PORTS, UIDS, node_facts, node_names, pods
from tests.sizes import sized

from mooring.api import core
from mooring.api.requests import HostPort
from mooring.api.selectors import LabelRequirement, Selector
from mooring.cache.arrays import IntArray
from mooring.cache.cache import Cache
from mooring.cache.internals import (
    allocatable_of,
    capacity_limits,
    changed_since,
    count_features,
    float_allocatable_of,
    float_nonzero_requested_of,
    float_requested_of,
    label_tally,
    listed_label_codes,
    listing_of,
    mark_of,
    requested_of,
    rows_labelled,
    spare_of,
)
from mooring.cache.node import Node
from mooring.cache.pods import Footprints, Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import InternalError

QUESTIONS: dict[str, tuple[Callable[[Pod], bool], Callable[[PodFacts], bool]]] = {
    "all": (lambda pod: True, lambda pod: True),
    "web": (lambda pod: pod.labels.get("app") == "web", lambda pod: pod.app == "web"),
    "db": (lambda pod: pod.labels.get("app") == "db", lambda pod: pod.app == "db"),
    "staying": (lambda pod: not pod.is_terminating, lambda pod: not pod.deleting),
    "selected": (
        lambda pod: pod.labels.get("app") == "web" and not pod.is_terminating,
        lambda pod: pod.app == "web" and not pod.deleting,
    ),
    "one of two": (
        lambda pod: pod.labels.get("app") in ("web", "db"),
        lambda pod: pod.app in ("web", "db"),
    ),
}
SELECTORS = {  # what all pods satisfy that a question is about
    "selected": Selector.from_map({"app": "web"}),
    "one of two": Selector((LabelRequirement("app", "In", frozenset({"web", "db"})),)),
    "staying": Selector((LabelRequirement("absent", "DoesNotExist"),)),
}

FEATURES: dict[
    str, tuple[Callable[[Pod], list[Hashable]], Callable[[PodFacts], list[Hashable]]]
] = {
    "app": (
        lambda pod: [pod.labels["app"]] if "app" in pod.labels else [],
        lambda pod: [pod.app] if pod.app else [],
    ),
    # The same feature twice in one pod, and one that changes when a pod is seen again.
    "twice": (
        lambda pod: ["any", "any", ("going", pod.is_terminating)],
        lambda pod: ["any", "any", ("going", pod.deleting)],
    ),
}


def first_letter(feature: Any) -> list[str]:
    """By what a feature can be found; some not at all."""
    return [feature[0][0]] if feature != ("going", True) else []


class Reader:
    """Someone who copied columns and follows the journal from there."""

    def __init__(self, cache: Cache, structure: int) -> None:
        self.mark = mark_of(cache.nodes)
        self.structure = structure
        self.columns = columns_of(cache.nodes)


def columns_of(nodes: Nodes) -> dict[str, IntArray]:
    live = {
        "requested": nodes.requested("cpu"),
        "spare": nodes.spare(GPU),
        "allocatable": nodes.allocatable("memory"),
        "nonzero": nodes.nonzero_requested("memory"),
        "pods": nodes.pod_counts,
        "unschedulable": nodes.unschedulable.astype(np.int64),
        "zone": nodes.label_codes(model.ZONE),
        "serial": nodes.label_codes(model.SERIAL),
        "taints": nodes._taint_codes,
        "web": nodes.count_pods("read", QUESTIONS["web"][0]),
    }
    return {name: column.copy() for name, column in live.items()}


class CacheMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.model = Model()
        self.asked: set[tuple[str, str]] = set()
        self.asked_features: set[tuple[str, str]] = set()
        self.patient = Reader(self.cache, 0)  # catches up now and then
        self.eager = Reader(self.cache, 0)  # catches up after every event
        self.patches: list[Any] = []
        self.deals_anew = False
        self.lists_always = False

    @initialize(
        deals_anew=st.booleans(),
        forgets=st.booleans(),
        no_labels=st.booleans(),
        in_arrays=st.booleans(),
        lists_always=st.booleans(),
        asked=st.sets(st.tuples(st.sampled_from(list(QUESTIONS)), st.sampled_from(LABEL_KEYS))),
        features=st.sets(st.tuples(st.sampled_from(list(FEATURES)), st.sampled_from(LABEL_KEYS))),
    )
    def begin(
        self,
        deals_anew: bool,
        forgets: bool,
        no_labels: bool,
        in_arrays: bool,
        lists_always: bool,
        asked: set[tuple[str, str]],
        features: set[tuple[str, str]],
    ) -> None:
        """Codes may be dealt anew, counters and features forgotten all the time."""
        self.asked = asked
        self.asked_features = features
        self.deals_anew = deals_anew
        self.lists_always = lists_always
        if deals_anew:
            self.patches.append(mock.patch("mooring.cache.nodes._SPARE_CODES", 0))
        if forgets:
            self.patches.append(mock.patch("mooring.cache.nodes.MAX_COUNTERS", 2))
            self.patches.append(mock.patch("mooring.cache.nodes.MAX_FEATURE_INDEXES", 1))
        if in_arrays:
            self.patches.append(mock.patch("mooring.cache.resources._FEW", 0))
        if no_labels:
            self.patches.append(mock.patch("mooring.cache.topology.MAX_LABEL_KEYS", 0))
        for patch in self.patches:
            patch.start()

    def teardown(self) -> None:
        for patch in self.patches:
            patch.stop()

    # --- what happens ----------------------------------------------------------------------------

    @rule(node=node_facts)
    def put_node(self, node: NodeFacts) -> None:
        known = self.model.nodes.get(node.name)
        old = self.cache.put_node(node.api())
        assert old == (known.api() if known is not None else None)
        self.model.put_node(node)

    @rule(name=node_names)
    def remove_node(self, name: str) -> None:
        self.cache.remove_node(name)
        self.model.remove_node(name)

    @precondition(lambda self: self.model.nodes)
    @rule(data=st.data())
    def flap(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(list(self.model.nodes.values())))
        self.remove_node(node.name)
        self.put_node(node)

    @precondition(lambda self: self.model.nodes)
    @rule(data=st.data(), other=node_facts)
    def relabel(self, data: st.DataObject, other: NodeFacts) -> None:
        node = data.draw(st.sampled_from(list(self.model.nodes.values())))
        self.put_node(node._replace(labels=other.labels, taints=other.taints))

    @rule(pod=pods)
    def put_pod(self, pod: PodFacts) -> None:
        known = self.model.pods.get(pod.uid)
        old = self.cache.put_pod(pod.pod())
        assert (old.node_name if old else None) == (known.node if known else None)
        self.model.put_pod(pod)

    @rule(listed=st.lists(pods, max_size=12, unique_by=lambda pod: pod.uid))
    def add_pods(self, listed: list[PodFacts]) -> None:
        """Those that are unknown so far, in one go."""
        finished = ("Succeeded", "Failed")
        new = [
            pod
            for pod in listed
            if pod.uid not in self.model.pods and pod.node and pod.phase not in finished
        ]
        made = [pod.pod() for pod in new]
        footprints = Footprints()
        for pod in made:
            footprints.share(pod)
        self.cache.add_pods(made)
        for facts in new:
            self.model.put_pod(facts)

    @precondition(lambda self: self.model.pods)
    @rule(data=st.data())
    def see_a_pod_again(self, data: st.DataObject) -> None:
        self.put_pod(data.draw(st.sampled_from(list(self.model.pods.values()))))

    @precondition(lambda self: self.model.pods)
    @rule(data=st.data(), phase=st.sampled_from(["Succeeded", "Failed"]))
    def finish_a_pod(self, data: st.DataObject, phase: str) -> None:
        pod = data.draw(st.sampled_from(list(self.model.pods.values())))
        self.put_pod(pod._replace(phase=phase))

    @rule(pod=pods)
    def remove_pod(self, pod: PodFacts) -> None:
        known = self.model.pods.get(pod.uid)
        old = self.cache.remove_pod(pod.pod())  # not the one that was put: only the uid counts
        assert (old.node_name if old else None) == (known.node if known else None)
        self.model.drop(pod.uid)

    @rule(pod=pods, name=node_names)
    def assume(self, pod: PodFacts, name: str) -> None:
        pending = pod.on("")._replace(phase="Pending")
        if pod.uid in self.model.pods:
            with pytest.raises(InternalError, match="is in the cache, so can't be assumed"):
                self.cache.assume(pending.pod(), name)
            return
        assert self.cache.assume(pending.pod(), name).node_name == name
        self.model.pods[pod.uid] = pending.on(name)
        self.model.assumed.add(pod.uid)

    @rule(pod=pods)
    def forget(self, pod: PodFacts) -> None:
        self.cache.forget(pod.pod())
        if pod.uid in self.model.assumed:
            self.model.drop(pod.uid)

    @precondition(lambda self: self.model.assumed)
    @rule(data=st.data(), elsewhere=st.none() | node_names)
    def confirm(self, data: st.DataObject, elsewhere: str | None) -> None:
        pod = self.model.pods[data.draw(st.sampled_from(sorted(self.model.assumed)))]
        self.put_pod(pod.on(elsewhere or pod.node))
        self.cache.forget(pod.pod())  # too late: nothing is taken back

    # --- what is asked ---------------------------------------------------------------------------

    @rule(question=st.sampled_from(list(QUESTIONS)), key=st.sampled_from(LABEL_KEYS))
    def begin_to_count(self, question: str, key: str) -> None:
        self.asked.add((question, key))

    @rule(question=st.sampled_from(list(FEATURES)), key=st.sampled_from(LABEL_KEYS))
    def begin_to_collect_features(self, question: str, key: str) -> None:
        self.asked_features.add((question, key))

    @rule()
    def list_nodes(self) -> None:
        nodes = self.cache.nodes
        assert [nodes.names[place] for place in listing_of(nodes)] == self.model.tree.listed()
        for key in LABEL_KEYS:
            expected = nodes.label_codes(key)[listing_of(nodes)]
            assert listed_label_codes(nodes, key).tolist() == expected.tolist()

    @rule()
    def catch_up_after_a_while(self) -> None:
        self.patient = self.catch_up(self.patient)

    @rule(data=st.data())
    def look_at_some_nodes(self, data: st.DataObject) -> None:
        nodes = self.cache.nodes
        size = len(nodes)
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
        part = nodes.take(mask)
        assert part.names == tuple(np.array(nodes.names, dtype=object)[mask])
        assert [node.name for node in part] == list(part.names)
        whole_columns = columns_of(nodes)
        for name, column in columns_of(part).items():
            np.testing.assert_array_equal(column, whole_columns[name][mask], name)
        listed = [part.names[place] for place in listing_of(part)]
        assert listed == [name for name in self.model.tree.listed() if name in part.names]
        for name in NODE_NAMES:
            assert (part.get(name) is not None) == (name in part.names)

    @precondition(lambda self: self.model.nodes)
    @rule(data=st.data(), others=st.lists(pods, max_size=3))
    def imagine(self, data: st.DataObject, others: list[PodFacts]) -> None:
        name = data.draw(st.sampled_from(list(self.model.nodes)))
        imagined = {pod.uid: pod for pod in self.model.pods_on(name)}
        node = self.node(name)
        # In thought a node's ports are a set: of two holders the first to go gives a port back.
        held = {port for pod in imagined.values() for port in pod.ports}
        leaving = (
            data.draw(st.lists(st.sampled_from(list(imagined)), unique=True)) if imagined else []
        )
        for uid in leaving:
            resident = self.cache.get_pod(uid)
            assert resident is not None
            node = node.without_pod(resident)
            gone = imagined.pop(uid)
            held -= set(gone.ports)
            match data.draw(st.sampled_from(["gone", "back", "back changed"])):
                case "back":
                    node = node.with_pod(resident)
                    imagined[uid] = gone
                    held |= set(gone.ports)
                case "back changed":
                    imagined[uid] = gone._replace(cpu=777, ports=())
                    node = node.with_pod(imagined[uid].pod())
        for pod in others:
            if pod.uid in imagined:
                node = node.without_pod(pod.pod())
                held -= set(imagined.pop(pod.uid).ports)
            else:
                node = node.with_pod(pod.pod())
                imagined[pod.uid] = pod
                held |= set(pod.ports)
        self.check_node(node, list(imagined.values()), held)

    # --- what holds ------------------------------------------------------------------------------

    @invariant()
    def pods_are_known(self) -> None:
        known = {pod.uid: pod.node_name for pod in self.cache.pods()}
        assert known == {pod.uid: pod.node for pod in self.model.pods.values()}
        assert self.cache.pod_count == len(self.model.pods)
        assert self.cache.assumed_count == len(self.model.assumed)
        assert {uid for uid in UIDS if self.cache.is_assumed(uid)} == self.model.assumed
        assert {uid for uid in UIDS if self.cache.get_pod(uid)} == set(self.model.pods)

    @invariant()
    def rows_are_consistent(self) -> None:
        table = self.cache.table
        assert set(table.names) == set(self.model.nodes)
        assert table.row_of == {name: row for row, name in enumerate(table.names)}
        assert self.cache.nodes.names == tuple(table.names)
        assert [node.metadata.name for node in table.api] == table.names

    def _several_resources_are_right(self, nodes: Nodes) -> None:
        for resources in (
            ("cpu", "memory"),
            ("pods", "cpu", "memory"),
            ("memory", "cpu"),
            (GPU,),
            (),
        ):
            for one, several in (
                (nodes.allocatable, allocatable_of),
                (nodes.requested, requested_of),
                (nodes.spare, spare_of),
                (nodes.allocatable, float_allocatable_of),
                (nodes.requested, float_requested_of),
                (nodes.nonzero_requested, float_nonzero_requested_of),
            ):
                found = several(nodes, resources)
                expected = [one(resource).astype(found.dtype).tolist() for resource in resources]
                assert found.tolist() == expected
            if len(nodes) and resources:
                offered = [
                    int(amount) for resource in resources for amount in nodes.allocatable(resource)
                ]
                least, most = capacity_limits(nodes, resources)
                assert least <= min(offered)
                assert most >= max(offered)

    @invariant()
    def numbers_are_right(self) -> None:
        nodes = self.cache.nodes
        facts = [self.model.nodes[name] for name in nodes.names]
        sums = [Sums.of(self.model.pods_on(name)) for name in nodes.names]
        for resource in (*RESOURCES, model.UNCOUNTED):
            offered = [0 if resource == model.UNCOUNTED else f.allocatable(resource) for f in facts]
            requested = [s.requested.get(resource, 0) for s in sums]
            assert nodes.allocatable(resource).tolist() == offered
            assert nodes.requested(resource).tolist() == requested
            spare = [a - b for a, b in zip(offered, requested, strict=True)]
            assert nodes.spare(resource).tolist() == spare
        self._several_resources_are_right(nodes)
        self._several_resources_are_right(nodes.take(np.arange(0, len(nodes), 2)))
        assert nodes.nonzero_requested("cpu").tolist() == [s.nonzero[0] for s in sums]
        assert nodes.nonzero_requested("memory").tolist() == [s.nonzero[1] for s in sums]
        assert nodes.pod_counts.tolist() == [len(s.uids) for s in sums]
        assert nodes.unschedulable.tolist() == [f.unschedulable for f in facts]

    @invariant()
    def single_nodes_agree(self) -> None:
        for name in self.model.nodes:
            self.check_node(self.node(name), self.model.pods_on(name))

    @invariant()
    def taints_and_labels_are_right(self) -> None:
        nodes = self.cache.nodes
        facts = [self.model.nodes[name] for name in nodes.names]
        seen: list[tuple[core.Taint, ...]] = []

        def number(taints: tuple[core.Taint, ...]) -> int:
            seen.append(taints)
            return len(seen) - 1

        found = [seen[place] for place in nodes.by_taints(number)]
        assert [tuple((t.key, t.value, t.effect) for t in taints) for taints in found] == [
            f.taints for f in facts
        ]
        assert nodes.has_taints == any(f.taints for f in facts)
        for key in LABEL_KEYS:
            values = nodes.label_values(key)
            meant = [f.all_labels.get(key) for f in facts]
            assert [values[code] for code in nodes.label_codes(key)] == meant
            assert nodes.label_count(key) == len(values)
            for code in range(len(values)):
                rows = [row for row, value in enumerate(meant) if value == values[code]]
                assert rows_labelled(nodes, key, code).tolist() == rows
                assert label_tally(nodes, key)[code] == len(rows)
            assert [values[node.label_code(key)] for node in nodes] == meant
        wanted = LabelRequirement(model.ZONE, "In", frozenset({"a", "b"}))
        met = [f.all_labels.get(model.ZONE) in ("a", "b") for f in facts]
        assert nodes.meeting(wanted).tolist() == met

    @invariant()
    def ports_and_images_are_right(self) -> None:
        nodes = self.cache.nodes
        for port in PORTS:
            meant = [self.model.port_taken(name, port) for name in nodes.names]
            assert nodes.port_taken(port).tolist() == meant
        for image in IMAGES:
            present = [image in self.model.nodes[name].image_names for name in nodes.names]
            assert nodes.image_spread(image) == sum(present)
            found = nodes.with_image(image)
            assert (found is not None) == any(present)
            if found is None:
                continue
            assert found[1].tolist() == present
            # The first report counts, so its size is only known while they all agree.
            assert found[0] in self.model.image_sizes[image]

    @invariant()
    def counts_are_right(self) -> None:
        nodes = self.cache.nodes
        for question, key in sorted(self.asked):
            matches, plainly = QUESTIONS[question]
            selector = SELECTORS.get(question)
            counts = self.model.count(plainly)
            per_node = nodes.count_pods(question, matches, selector)
            assert per_node.tolist() == [counts[n] for n in nodes.names]
            values = nodes.label_values(key)
            sums = nodes.count_pods_by(key, question, matches, selector)
            assert len(sums) == len(values)
            found = {value: int(n) for value, n in zip(values, sums, strict=True) if n}
            assert found == self.model.count_by(key, plainly)

    @invariant()
    def features_are_right(self) -> None:
        nodes = self.cache.nodes
        for question, key in sorted(self.asked_features):
            extract, plainly = FEATURES[question]
            meant = self.model.count_features(plainly)
            features = count_features(nodes, question, extract, first_letter)
            assert len(features.distinct) == len(meant)
            assert set(features.distinct) == set(meant)
            for letter in ("a", "d", "g", "w"):
                having = {feature for feature in meant if letter in first_letter(feature)}
                assert set(features.having(letter)) == having
            values = nodes.label_values(key)
            for feature, counts in meant.items():
                assert features.per_node(feature).tolist() == [counts[n] for n in nodes.names]
                sums = features.per_domain(feature, key)
                assert len(sums) == len(values)
                found = {value: int(n) for value, n in zip(values, sums, strict=True) if n}
                assert found == self.model.sum_by(key, counts)

    @invariant()
    def listing_is_right(self) -> None:
        if self.lists_always:
            self.list_nodes()

    @invariant()
    def journal_is_complete(self) -> None:
        self.eager = self.catch_up(self.eager)

    # --- helpers ---------------------------------------------------------------------------------

    def catch_up(self, reader: Reader) -> Reader:
        live = columns_of(self.cache.nodes)
        changes = changed_since(self.cache.nodes, reader.mark)
        if changes is None:
            assert self.deals_anew or reader.structure != self.model.structure
        else:
            assert reader.structure == self.model.structure
            rows = [*changes.pods, *changes.nodes]
            for name, column in reader.columns.items():
                column[rows] = live[name][rows]
                assert column.tolist() == live[name].tolist(), name
        return Reader(self.cache, self.model.structure)

    def node(self, name: str) -> Node:
        found = self.cache.nodes.get(name)
        assert found is not None
        return found

    def check_node(
        self, node: Node, residents: list[PodFacts], held: set[HostPort] | None = None
    ) -> None:
        facts = self.model.nodes[node.name]
        sums = Sums.of(residents)
        assert sorted(pod.uid for pod in node.pods) == sorted(sums.uids)
        assert node.pod_count == len(residents)
        assert node.unschedulable == facts.unschedulable
        for resource in RESOURCES:
            offered, requested = facts.allocatable(resource), sums.requested[resource]
            assert node.allocatable(resource) == offered
            assert node.requested(resource) == requested
            assert node.spare(resource) == offered - requested
        assert node.nonzero_requested("cpu") == sums.nonzero[0]
        assert node.nonzero_requested("memory") == sums.nonzero[1]
        if held is None:
            held = {port for pod in residents for port in pod.ports}
        for port in PORTS:
            assert node.port_taken(port) == model.is_held(held, port)
        for image in IMAGES:
            assert (node.image_size(image) is not None) == (image in facts.image_names)


def test_the_columns_equal_a_recount_after_any_events() -> None:
    run_state_machine_as_test(
        CacheMachine,
        settings=settings(max_examples=sized(40), stateful_step_count=40, deadline=None),
    )

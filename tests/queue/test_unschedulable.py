from tests.queue.builders import START, pod

from mooring.framework.results import QueuedPod
from mooring.queue.unschedulable import UnschedulablePods


def refused(name: str, *plugins: str, pending: str = "", gate: str = "") -> QueuedPod:
    queued = QueuedPod(pod(name), START)
    queued.unschedulable_plugins = frozenset(plugins)
    queued.pending_plugins = frozenset({pending} - {""})
    queued.gated_by = gate
    return queued


def holding(*items: QueuedPod) -> UnschedulablePods:
    pods = UnschedulablePods()
    for item in items:
        pods.add(item)
    return pods


def test_finds_pods_by_who_refused_them_in_order_of_arrival() -> None:
    b, a, c = refused("b", "Fit", "Taint"), refused("a", "Taint"), refused("c", pending="Hold")
    pods = holding(b, a, c)
    assert pods.concerned(["Taint"]) == [b, a]
    assert pods.concerned(["Hold", "Fit"]) == [b, c]
    assert pods.concerned(["Nobody"]) == []


def test_names_a_pod_once_however_many_plugins_refused_it() -> None:
    a = refused("a", "Fit", "Taint")
    assert holding(a).concerned(["Fit", "Taint"]) == [a]


def test_forgets_everything_about_a_removed_pod() -> None:
    a = refused("a", "Gate", gate="Gate")
    pods = holding(a)
    assert pods.gated_count == 1
    assert pods.remove("ns/a") is a
    assert pods.remove("ns/a") is None
    assert (len(pods), pods.gated_count, pods.concerned(["Gate"])) == (0, 0, [])


def test_replaces_a_pod_of_the_same_name() -> None:
    pods = holding(refused("a", "Fit"))
    again = refused("a", "Fit")
    pods.add(again)
    assert list(pods) == [again]
    assert pods.concerned(["Fit"]) == [again]


def test_finds_a_gated_pod_by_its_gate_alone_unless_that_is_known_to_be_shut() -> None:
    a, b = refused("a", "Fit", "Gate", gate="Gate"), refused("b", "Gate", gate="Gate")
    c = refused("c", "Fit")
    pods = holding(b, a, c)
    assert pods.concerned(["Fit"]) == [c]
    assert pods.concerned(["Fit", "Gate"]) == [b, a, c]
    assert pods.concerned(["Fit", "Gate"], lambda: {b.pod.uid, c.pod.uid}) == [a, c]

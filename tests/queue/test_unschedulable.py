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
    assert pods.refused_by(["Taint"]) == [b, a]
    assert pods.refused_by(["Hold", "Fit"]) == [b, c]
    assert pods.refused_by(["Nobody"]) == []


def test_names_a_pod_once_however_many_plugins_refused_it() -> None:
    a = refused("a", "Fit", "Taint")
    assert holding(a).refused_by(["Fit", "Taint"]) == [a]


def test_forgets_everything_about_a_removed_pod() -> None:
    a = refused("a", "Gate", gate="Gate")
    pods = holding(a)
    assert pods.gated_count == 1
    assert pods.remove("ns/a") is a
    assert pods.remove("ns/a") is None
    assert (len(pods), pods.gated_count, pods.refused_by(["Gate"])) == (0, 0, [])


def test_replaces_a_pod_of_the_same_name() -> None:
    pods = holding(refused("a", "Fit"))
    again = refused("a", "Fit")
    pods.add(again)
    assert list(pods) == [again]
    assert pods.refused_by(["Fit"]) == [again]

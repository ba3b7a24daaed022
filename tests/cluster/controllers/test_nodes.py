from __future__ import annotations

from tests.cluster.stage import NODES, Stage, pod, stage

from mooring.cluster.apiserver.store import Object


def taints(play: Stage) -> list[str]:
    found = play.get(NODES, "n0")["spec"].get("taints", ())
    return [f"{one['key']}:{one['effect']}" for one in found]


def test_taints_a_node_that_is_cordoned() -> None:
    with stage() as play:
        play.nodes(taints=("mine:NoSchedule",))
        play.change(NODES, "n0", unschedulable=True)
        play.settle()
        assert taints(play) == ["mine:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"]
        play.change(NODES, "n0", unschedulable=False)
        play.settle()
        assert taints(play) == ["mine:NoSchedule"]


def test_taints_a_node_that_is_not_ready() -> None:
    wanted_taints = {
        "False": ["node.kubernetes.io/not-ready:NoSchedule"],
        "Unknown": ["node.kubernetes.io/unreachable:NoSchedule"],
        "True": [],
    }
    with stage() as play:
        play.nodes()
        for status, wanted in wanted_taints.items():

            def report(value: Object, status: str = status) -> None:
                value["status"]["conditions"][-1]["status"] = status

            play.verbs.modify(NODES, "", "n0", report, subresource="status")
            play.settle()
            assert taints(play) == wanted


def test_deletes_the_pods_of_a_node_that_stays_away() -> None:
    with stage() as play:
        play.nodes(2)
        play.create(pod("p", node="n0"), pod("q", node="n1"))
        play.advance(1)
        play.verbs.delete(NODES, "", "n0")
        play.advance(30)
        assert play.pod_names() == ["p", "q"]
        play.advance(15)
        assert play.pod_names() == ["q"]


def test_spares_the_pods_of_a_node_that_comes_back() -> None:
    with stage() as play:
        play.nodes(1, name="n0")
        play.create(pod("p", node="n0"))
        play.advance(1)
        play.verbs.delete(NODES, "", "n0")
        play.advance(10)
        play.nodes(1, name="n0")
        play.advance(100)
        assert play.phases() == {"p": "Running"}

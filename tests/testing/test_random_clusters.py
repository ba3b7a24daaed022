from collections.abc import Iterator

from mooring.api import codec, core
from mooring.api.taints import EFFECTS
from mooring.cache.pods import Pod
from mooring.testing._random_clusters import random_cluster

SEEDS = range(24)  # those the checks use


def clusters_nodes() -> Iterator[core.Node]:
    return (node for seed in SEEDS for node in random_cluster(seed).nodes)


def incoming() -> list[Pod]:
    return [pod for seed in SEEDS for pod in random_cluster(seed).incoming]


def residents() -> list[Pod]:
    return [pod for seed in SEEDS for pod in random_cluster(seed).residents]


def test_gives_the_same_cluster_for_the_same_seed() -> None:
    first = random_cluster(7)
    random_cluster.cache_clear()
    second = random_cluster(7)
    assert first is not second
    assert first.nodes == second.nodes
    assert [pod.api for pod in first.incoming] == [pod.api for pod in second.incoming]
    assert [pod.api for pod in first.residents] == [pod.api for pod in second.residents]


def test_has_empty_and_large_clusters() -> None:
    sizes = {len(random_cluster(seed).nodes) for seed in SEEDS}
    assert {0, 1, 2, 30} <= sizes


def test_has_nodes_of_every_kind() -> None:
    nodes = list(clusters_nodes())
    assert {taint.effect for node in nodes for taint in node.spec.taints} == set(EFFECTS)
    assert {node.spec.unschedulable for node in nodes} == {False, True}
    assert any("cpu" not in node.status.allocatable for node in nodes)
    memory = [node.status.allocatable.get("memory") for node in nodes]
    assert any(amount is not None and amount.value == 0 for amount in memory)
    assert any("nvidia.com/gpu" in node.status.allocatable for node in nodes)
    assert any(node.status.images for node in nodes)
    assert any("topology.kubernetes.io/zone" not in node.metadata.labels for node in nodes)


def test_has_overcommitted_nodes_and_taken_ports() -> None:
    views = [random_cluster(seed).cache().nodes for seed in SEEDS]
    assert any((nodes.spare("cpu") < 0).any() for nodes in views)
    assert any(pod.host_ports for pod in residents())


def test_has_residents_that_leave_that_finished_and_that_lost_their_node() -> None:
    pods = residents()
    assert any(pod.is_terminating for pod in pods)
    assert any(pod.is_finished for pod in pods)
    assert any(pod.node_name == "gone" for pod in pods)
    assert any(pod.usage != pod.all_requests for pod in pods)


def test_has_pods_with_every_operator() -> None:
    text = b"".join(codec.encode(pod.api) for pod in incoming()).decode()
    for operator in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal"):
        assert f'"operator":"{operator}"' in text, operator


def test_has_pods_with_every_feature() -> None:
    set_fields = {name for pod in incoming() for name in codec.to_builtins(pod.api)["spec"]}
    assert set_fields >= {
        "affinity",
        "initContainers",
        "nodeName",
        "nodeSelector",
        "overhead",
        "preemptionPolicy",
        "priority",
        "resources",
        "schedulingGates",
        "tolerations",
        "topologySpreadConstraints",
    }
    text = b"".join(codec.encode(pod.api) for pod in incoming()).decode()
    for word in ("matchFields", "podAffinity", "podAntiAffinity", "hostPort", "nominatedNodeName"):
        assert f'"{word}"' in text, word


def test_has_pods_that_ask_for_nothing_and_for_everything() -> None:
    pods = incoming()
    assert any(not pod.all_requests for pod in pods)
    assert any(pod.requests("memory") == 64 * 2**50 for pod in pods)


def test_stays_within_what_can_be_multiplied_by_a_hundred() -> None:
    largest = max(amount for pod in incoming() for amount in pod.all_requests.values())
    assert 100 * largest < 2**63

"""What a cluster adds to new objects because of what else there is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.apiserver.compared_requests import Object, patch, pod, thing
from tests.cluster.apiserver.in_process_server import PODS, InProcessServer

from mooring.client.errors import Forbidden
from mooring.cluster.apiserver.options import WriteOptions
from mooring.cluster.apiserver.resources import known

CLAIMS = known("persistentvolumeclaims")
PRIORITIES = known("priorityclasses", "scheduling.k8s.io")
RUNTIMES = known("runtimeclasses", "node.k8s.io")
SERVICES = known("services")
STORAGE = known("storageclasses", "storage.k8s.io")
DAEMONS = known("daemonsets", "apps")
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


@pytest.fixture
def server() -> InProcessServer:
    return InProcessServer()


def make_pod(server: InProcessServer, **spec: Any) -> Object:
    value = server.verbs.create(
        PODS, pod("p", spec), namespace="default", options=WriteOptions(dry_run=True)
    )
    made: Object = value["spec"]
    return made


# --- priorities --------------------------------------------------------------------------------


def test_a_pod_without_a_class_has_no_priority(server: InProcessServer) -> None:
    assert make_pod(server)["priority"] == 0


def test_a_pod_gets_the_priority_of_its_class(server: InProcessServer) -> None:
    server.create(PRIORITIES, "high", value=1000, preemptionPolicy="Never")
    made = make_pod(server, priorityClassName="high")
    assert (made["priority"], made["preemptionPolicy"]) == (1000, "Never")
    assert make_pod(server, priorityClassName="system-node-critical")["priority"] == 2_000_001_000


def test_a_pod_without_a_class_gets_the_default_one(server: InProcessServer) -> None:
    server.create(PRIORITIES, "usual", value=5, globalDefault=True)
    made = make_pod(server)
    assert (made["priorityClassName"], made["priority"]) == ("usual", 5)
    with pytest.raises(Forbidden, match="PriorityClass usual is already marked as default"):
        server.create(PRIORITIES, "other", value=6, globalDefault=True)


# --- runtime classes ---------------------------------------------------------------------------


def test_a_runtime_class_costs_something_and_runs_somewhere(server: InProcessServer) -> None:
    server.create(
        RUNTIMES,
        "kata",
        handler="kata",
        overhead={"podFixed": {"cpu": "0.25"}},
        scheduling={
            "nodeSelector": {"kata": "yes"},
            "tolerations": [{"key": "kata", "operator": "Exists"}],
        },
    )
    made = make_pod(server, runtimeClassName="kata", nodeSelector={"disk": "ssd"})
    assert made["overhead"] == {"cpu": "250m"}
    assert made["nodeSelector"] == {"disk": "ssd", "kata": "yes"}
    assert {"key": "kata", "operator": "Exists"} in made["tolerations"]
    with pytest.raises(Forbidden, match=r"conflict: runtimeClass.scheduling.nodeSelector\[kata\]"):
        make_pod(server, runtimeClassName="kata", nodeSelector={"kata": "no"})


# --- storage -----------------------------------------------------------------------------------


def claim(server: InProcessServer, name: str, **spec: Any) -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    whole = {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}
    made: Object = server.create(CLAIMS, name, spec=whole)["spec"]
    return made


def test_a_claim_without_a_class_gets_the_newest_default(server: InProcessServer) -> None:
    assert "storageClassName" not in claim(server, "none")
    for name in ("first", "second"):
        server.create(
            STORAGE, name, provisioner="x", metadata={"annotations": {IS_DEFAULT: "true"}}
        )
        server.now += 60
    server.create(
        STORAGE, "third", provisioner="x", metadata={"annotations": {IS_DEFAULT: "false"}}
    )
    assert claim(server, "a")["storageClassName"] == "second"
    assert claim(server, "b", storageClassName="")["storageClassName"] == ""
    assert claim(server, "c", storageClassName="mine")["storageClassName"] == "mine"


# --- services ----------------------------------------------------------------------------------


def serve(server: InProcessServer, name: str, **spec: Any) -> Object:
    ports = [{"port": 80, "name": "http"}, {"port": 443, "name": "https"}]
    made: Object = server.create(SERVICES, name, spec={"ports": ports, **spec})["spec"]
    return made


def test_services_have_addresses_of_their_own(server: InProcessServer) -> None:
    addresses = [serve(server, name)["clusterIP"] for name in ("a", "b", "c")]
    assert addresses == ["10.96.0.2", "10.96.0.3", "10.96.0.4"]
    server.verbs.delete(SERVICES, "default", "b")
    assert serve(server, "d")["clusterIP"] == "10.96.0.3"
    assert serve(server, "e", clusterIP="None")["clusterIPs"] == ["None"]


def test_ports_of_nodes_are_taken_once(server: InProcessServer) -> None:
    first, second = (serve(server, name, type="NodePort")["ports"] for name in ("a", "b"))
    numbers = [port["nodePort"] for port in (*first, *second)]
    assert numbers == [30000, 30001, 30002, 30003]


def test_a_service_keeps_its_address_and_its_ports(server: InProcessServer) -> None:
    before = serve(server, "a", type="NodePort")
    ports = [{"port": 80, "name": "http"}, {"port": 8080, "name": "other"}]
    value = thing("v1", "Service", "a", spec={"type": "NodePort", "ports": ports})
    after = server.verbs.replace(SERVICES, value, namespace="default", name="a")["spec"]
    assert after["clusterIP"] == before["clusterIP"]
    assert [port["nodePort"] for port in after["ports"]] == [30000, 30002]
    code, words = server.refusal(
        patch("/api/v1/namespaces/default/services/a", {"spec": {"clusterIP": "10.96.9.9"}})
    )
    assert (code, "may not change once set" in words) == (422, True)


# --- daemon sets -------------------------------------------------------------------------------


def test_a_daemon_set_counts_its_templates(server: InProcessServer) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    server.create(DAEMONS, "d", spec=spec)

    def generation_after(change: Any) -> str:
        seen = server.verbs.modify(DAEMONS, "default", "d", change)
        count: str = seen["metadata"]["annotations"]["deprecated.daemonset.template.generation"]
        return count

    def wait_longer(value: Object) -> None:
        value["spec"]["minReadySeconds"] = 3

    def another_image(value: Object) -> None:
        value["spec"]["template"]["spec"]["containers"][0]["image"] = "j"

    assert [generation_after(wait_longer), generation_after(another_image)] == ["1", "2"]

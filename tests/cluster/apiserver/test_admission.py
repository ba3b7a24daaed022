"""What a cluster adds to new objects because of what else there is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.apiserver.both import Object, patch, pod, thing
from tests.cluster.apiserver.desk import PODS, Desk

from mooring.client.errors import Forbidden
from mooring.cluster.apiserver.resources import known

CLAIMS = known("persistentvolumeclaims")
PRIORITIES = known("priorityclasses", "scheduling.k8s.io")
RUNTIMES = known("runtimeclasses", "node.k8s.io")
SERVICES = known("services")
STORAGE = known("storageclasses", "storage.k8s.io")
DAEMONS = known("daemonsets", "apps")
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


@pytest.fixture
def desk() -> Desk:
    return Desk()


def make_pod(desk: Desk, **spec: Any) -> Object:
    value = desk.verbs.create(PODS, pod("p", spec), namespace="default", dry_run=True)
    made: Object = value["spec"]
    return made


# --- priorities --------------------------------------------------------------------------------


def test_a_pod_without_a_class_has_no_priority(desk: Desk) -> None:
    assert make_pod(desk)["priority"] == 0


def test_a_pod_gets_the_priority_of_its_class(desk: Desk) -> None:
    desk.create(PRIORITIES, "high", value=1000, preemptionPolicy="Never")
    made = make_pod(desk, priorityClassName="high")
    assert (made["priority"], made["preemptionPolicy"]) == (1000, "Never")
    assert make_pod(desk, priorityClassName="system-node-critical")["priority"] == 2_000_001_000


def test_a_pod_without_a_class_gets_the_default_one(desk: Desk) -> None:
    desk.create(PRIORITIES, "usual", value=5, globalDefault=True)
    made = make_pod(desk)
    assert (made["priorityClassName"], made["priority"]) == ("usual", 5)
    with pytest.raises(Forbidden, match="PriorityClass usual is already marked as default"):
        desk.create(PRIORITIES, "other", value=6, globalDefault=True)


# --- runtime classes ---------------------------------------------------------------------------


def test_a_runtime_class_costs_something_and_runs_somewhere(desk: Desk) -> None:
    desk.create(
        RUNTIMES,
        "kata",
        handler="kata",
        overhead={"podFixed": {"cpu": "0.25"}},
        scheduling={
            "nodeSelector": {"kata": "yes"},
            "tolerations": [{"key": "kata", "operator": "Exists"}],
        },
    )
    made = make_pod(desk, runtimeClassName="kata", nodeSelector={"disk": "ssd"})
    assert made["overhead"] == {"cpu": "250m"}
    assert made["nodeSelector"] == {"disk": "ssd", "kata": "yes"}
    assert {"key": "kata", "operator": "Exists"} in made["tolerations"]
    with pytest.raises(Forbidden, match=r"conflict: runtimeClass.scheduling.nodeSelector\[kata\]"):
        make_pod(desk, runtimeClassName="kata", nodeSelector={"kata": "no"})


# --- storage -----------------------------------------------------------------------------------


def claim(desk: Desk, name: str, **spec: Any) -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    whole = {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}
    made: Object = desk.create(CLAIMS, name, spec=whole)["spec"]
    return made


def test_a_claim_without_a_class_gets_the_newest_default(desk: Desk) -> None:
    assert "storageClassName" not in claim(desk, "none")
    for name in ("first", "second"):
        desk.create(STORAGE, name, provisioner="x", metadata={"annotations": {IS_DEFAULT: "true"}})
        desk.now += 60
    desk.create(STORAGE, "third", provisioner="x", metadata={"annotations": {IS_DEFAULT: "false"}})
    assert claim(desk, "a")["storageClassName"] == "second"
    assert claim(desk, "b", storageClassName="")["storageClassName"] == ""
    assert claim(desk, "c", storageClassName="mine")["storageClassName"] == "mine"


# --- services ----------------------------------------------------------------------------------


def serve(desk: Desk, name: str, **spec: Any) -> Object:
    ports = [{"port": 80, "name": "http"}, {"port": 443, "name": "https"}]
    made: Object = desk.create(SERVICES, name, spec={"ports": ports, **spec})["spec"]
    return made


def test_services_have_addresses_of_their_own(desk: Desk) -> None:
    addresses = [serve(desk, name)["clusterIP"] for name in ("a", "b", "c")]
    assert addresses == ["10.96.0.2", "10.96.0.3", "10.96.0.4"]
    desk.verbs.delete(SERVICES, "default", "b")
    assert serve(desk, "d")["clusterIP"] == "10.96.0.3"
    assert serve(desk, "e", clusterIP="None")["clusterIPs"] == ["None"]


def test_ports_of_nodes_are_taken_once(desk: Desk) -> None:
    first, second = (serve(desk, name, type="NodePort")["ports"] for name in ("a", "b"))
    numbers = [port["nodePort"] for port in (*first, *second)]
    assert numbers == [30000, 30001, 30002, 30003]


def test_a_service_keeps_its_address_and_its_ports(desk: Desk) -> None:
    before = serve(desk, "a", type="NodePort")
    ports = [{"port": 80, "name": "http"}, {"port": 8080, "name": "other"}]
    value = thing("v1", "Service", "a", spec={"type": "NodePort", "ports": ports})
    after = desk.verbs.replace(SERVICES, value, namespace="default", name="a")["spec"]
    assert after["clusterIP"] == before["clusterIP"]
    assert [port["nodePort"] for port in after["ports"]] == [30000, 30002]
    code, words = desk.refusal(
        patch("/api/v1/namespaces/default/services/a", {"spec": {"clusterIP": "10.96.9.9"}})
    )
    assert (code, "may not change once set" in words) == (422, True)


# --- daemon sets -------------------------------------------------------------------------------


def test_a_daemon_set_counts_its_templates(desk: Desk) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    desk.create(DAEMONS, "d", spec=spec)

    def generation_after(change: Any) -> str:
        seen = desk.verbs.modify(DAEMONS, "default", "d", change)
        count: str = seen["metadata"]["annotations"]["deprecated.daemonset.template.generation"]
        return count

    def wait_longer(value: Object) -> None:
        value["spec"]["minReadySeconds"] = 3

    def another_image(value: Object) -> None:
        value["spec"]["template"]["spec"]["containers"][0]["image"] = "j"

    assert [generation_after(wait_longer), generation_after(another_image)] == ["1", "2"]

from typing import Any

import pytest

from mooring.api import core
from mooring.api.codec import convert
from mooring.api.requests import HostPort
from mooring.cache.pods import Pod
from mooring.testing import pod

MIB = 1024 * 1024


def resized(**status: Any) -> Pod:
    spec = {
        "resources": status.pop("pod_level", None),
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}],
    }
    return Pod(convert({"spec": spec, "status": status}, core.Pod))


def test_carries_its_identity() -> None:
    made = pod("web", namespace="shop", uid="u1", labels={"app": "web"}, priority=7, on="n")
    assert (made.name, made.namespace, made.key, made.uid) == ("web", "shop", "shop/web", "u1")
    assert made.labels == {"app": "web"}
    assert (made.priority, made.node_name) == (7, "n")
    assert repr(made) == "Pod('shop/web')"


def test_goes_by_its_name_when_it_has_no_uid() -> None:
    made = Pod(convert({"metadata": {"name": "web", "namespace": "shop"}}, core.Pod))
    assert made.uid == "shop/web"
    assert made.priority == 0


@pytest.mark.parametrize("name", ["node_name", "uid", "api", "_weight", "something_new"])
def test_cannot_be_changed(name: str) -> None:
    made = pod("web", namespace="shop")
    with pytest.raises(AttributeError, match=f"shop/web is read-only: cannot set '{name}'"):
        setattr(made, name, "x")


def test_cannot_lose_what_it_has() -> None:
    made = pod("web", namespace="shop")
    with pytest.raises(AttributeError, match="shop/web is read-only: cannot delete 'uid'"):
        del made.uid
    assert made.uid


def test_its_amounts_cannot_be_changed() -> None:
    amounts: Any = pod("web", cpu="1").usage
    with pytest.raises(TypeError):
        amounts["cpu"] = 5


def test_asks_in_the_units_of_the_columns() -> None:
    made = pod("web", cpu="250m", memory="1Gi", requests={"example.com/gpu": 2, "storage": "1Gi"})
    assert made.requests("cpu") == 250
    assert made.requests("memory") == 2**30
    assert made.requests("example.com/gpu") == 2
    assert made.requests("example.com/unheard-of") == 0
    assert "storage" not in made.all_requests


def test_an_unresized_pod_occupies_what_it_asks_for() -> None:
    made = pod("web", cpu="250m")
    assert made.usage is made.all_requests
    assert made.nonzero_usage == made.nonzero_requests == (250, 200 * MIB)


def test_a_container_that_asks_for_nothing_counts_with_a_default() -> None:
    assert pod("web").nonzero_requests == (100, 200 * MIB)
    assert pod("web", cpu="0", memory="0").nonzero_requests == (0, 0)
    assert pod("web", cpu="1", images=["a", "b"]).nonzero_requests == (1100, 400 * MIB)


def test_a_resized_container_occupies_the_most_it_may_hold() -> None:
    granted = {"name": "c", "resources": {"requests": {"cpu": "3", "memory": "32Mi"}}}
    made = resized(containerStatuses=[granted])
    assert (made.requests("cpu"), made.requests("memory")) == (1000, 64 * MIB)
    assert dict(made.usage) == {"cpu": 3000, "memory": 64 * MIB}
    assert made.nonzero_requests == (1000, 64 * MIB)
    assert made.nonzero_usage == (3000, 64 * MIB)


def test_a_pod_resized_as_a_whole_occupies_the_most_it_may_hold() -> None:
    made = resized(
        pod_level={"requests": {"cpu": "2"}},
        resources={"requests": {"cpu": "5"}},
    )
    assert made.requests("cpu") == 2000
    assert made.usage["cpu"] == 5000
    assert made.nonzero_usage == (5000, 64 * MIB)


def test_names_its_host_ports() -> None:
    made = pod("web", ports=[80, "10.0.0.1:53/UDP"])
    assert made.host_ports == (HostPort("0.0.0.0", "TCP", 80), HostPort("10.0.0.1", "UDP", 53))
    assert made.host_ports is made.host_ports


@pytest.mark.parametrize(
    ("phase", "is_finished"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)],
)
def test_is_finished_once_it_succeeded_or_failed(phase: str, is_finished: bool) -> None:
    assert pod("web", phase=phase).is_finished is is_finished


def test_is_terminating_once_its_deletion_was_asked_for() -> None:
    assert pod("web", deleting=True).is_terminating
    assert not pod("web").is_terminating


def test_passes_on_what_its_object_says() -> None:
    made = pod("web", annotations={"a": "b"}, scheduler="mine", nominated="n")
    assert made.annotations == {"a": "b"}
    assert made.scheduler_name == made.spec.scheduler_name == "mine"
    assert made.nominated_node_name == made.status.nominated_node_name == "n"


def test_is_assumed_as_a_copy() -> None:
    pending = pod("web", uid="u1", cpu="1")
    assumed = pending.assumed_on("n")
    assert (assumed.uid, assumed.node_name, assumed.spec.node_name) == ("u1", "n", "n")
    assert dict(assumed.usage) == {"cpu": 1000}
    assert pending.node_name == ""


def test_computes_once_for_all_states_that_weigh_alike() -> None:
    pending = pod("web", cpu="1")
    assumed = pending.assumed_on("n")
    confirmed = Pod(assumed.api)
    assert confirmed.has_same_footprint(assumed)
    computed = confirmed.usage
    assert computed is assumed.usage
    assert computed is pending.usage


def test_shares_nothing_with_a_state_that_weighs_more() -> None:
    asked = resized()
    running = resized(containerStatuses=[{"name": "c", "resources": {"requests": {"cpu": "3"}}}])
    assert not running.has_same_footprint(asked)
    assert (asked.usage["cpu"], running.usage["cpu"]) == (1000, 3000)

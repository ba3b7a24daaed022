from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.virtual_cluster import VirtualCluster, virtual_cluster

from mooring.cluster.apiserver.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from mooring.cluster.apiserver.store import Object

HTTP = {"name": "http", "port": 80, "protocol": "TCP"}
DNS = {"name": "dns", "port": 53, "protocol": "UDP"}


def service(**spec: Any) -> Object:
    meta = {"name": "db", "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"ports": [{"port": 80}], **spec},
    }


def subset(*ips: str, ports: Any = (HTTP,), **more: Any) -> Object:
    return {"addresses": [{"ip": ip} for ip in ips], "ports": [*ports], **more}


def endpoints(*subsets: Object, **meta: Any) -> Object:
    named = {"name": "db", "namespace": "default", **meta}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": named, "subsets": [*subsets]}


def slices(cluster: VirtualCluster) -> list[Object]:
    cluster.advance(1)
    return [one for one in cluster.all(ENDPOINT_SLICES) if one["metadata"]["name"] != "kubernetes"]


def addresses(cluster: VirtualCluster) -> dict[str, list[str]]:
    """By address type and ports."""
    return {
        f"{one['addressType']} {' '.join(port['name'] for port in one['ports'])}".strip(): [
            found["addresses"][0] for found in one["endpoints"]
        ]
        for one in slices(cluster)
    }


def change(cluster: VirtualCluster, *subsets: Object) -> None:
    cluster.verbs.modify(ENDPOINTS, "default", "db", lambda value: {**value, "subsets": [*subsets]})


def test_mirrors_endpoints_through_create_update_and_delete() -> None:
    with virtual_cluster() as cluster:
        about = {"labels": {"tier": "back"}, "annotations": {"note": "x"}}
        about["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
        target = {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"}
        written = endpoints(subset("10.1.2.3"), **about)
        written["subsets"][0]["addresses"][0] |= {"hostname": "h", "targetRef": target}
        cluster.create(service(), written)
        [one] = slices(cluster)
        meta = one["metadata"]
        assert meta["name"].startswith("db-")
        assert meta["labels"] == {
            "tier": "back",
            "kubernetes.io/service-name": "db",
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
        }
        assert meta["annotations"] == {"note": "x"}
        [owner] = meta["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("Endpoints", "db", True)
        assert one["ports"] == [HTTP]
        assert one["endpoints"] == [
            {
                "addresses": ["10.1.2.3"],
                "conditions": {"ready": True},
                "hostname": "h",
                "targetRef": target,
            }
        ]
        change(cluster, subset("10.1.2.3", "10.2.3.4", notReadyAddresses=[{"ip": "10.9.9.9"}]))
        [same] = slices(cluster)
        assert same["metadata"]["name"] == meta["name"]
        ready = {found["addresses"][0]: found["conditions"]["ready"] for found in same["endpoints"]}
        assert ready == {"10.1.2.3": True, "10.2.3.4": True, "10.9.9.9": False}
        cluster.verbs.delete(ENDPOINTS, "default", "db")
        assert slices(cluster) == []


def test_has_a_slice_for_each_set_of_ports_and_family_of_addresses() -> None:
    with virtual_cluster() as cluster:
        both = subset("10.0.0.1", "2001:db8::1", ports=[HTTP, DNS])
        cluster.create(service(), endpoints(both, subset("10.0.0.2", ports=[DNS])))
        assert addresses(cluster) == {
            "IPv4 http": ["10.0.0.1"],
            "IPv6 http": ["2001:db8::1"],
            "IPv4 dns": ["10.0.0.1", "10.0.0.2"],
            "IPv6 dns": ["2001:db8::1"],
        }
        change(cluster, subset("10.0.0.1", ports=[HTTP, DNS]), subset("10.0.0.1", ports=[DNS]))
        assert addresses(cluster) == {"IPv4 dns http": ["10.0.0.1"]}
        change(cluster, subset("10.0.0.1", ports=()))
        assert addresses(cluster) == {"IPv4": ["10.0.0.1"]}
        change(cluster)
        assert slices(cluster) == []


def test_an_address_that_is_not_ready_anywhere_is_not_ready() -> None:
    with virtual_cluster() as cluster:
        waiting = {"notReadyAddresses": [{"ip": "10.0.0.1"}], "ports": [HTTP]}
        cluster.create(service(), endpoints(subset("10.0.0.1"), waiting))
        [one] = slices(cluster)
        assert [found["conditions"] for found in one["endpoints"]] == [{"ready": False}]


@pytest.mark.parametrize(
    "meta",
    [
        {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}},
    ],
)
def test_leaves_out_what_asks_for_it_and_the_locks_of_leaders(meta: Object) -> None:
    with virtual_cluster() as cluster:
        cluster.create(service(), endpoints(subset("10.0.0.1"), **meta))
        assert slices(cluster) == []


def test_follows_the_service() -> None:
    with virtual_cluster() as cluster:
        cluster.create(endpoints(subset("10.0.0.1")))
        assert slices(cluster) == []
        cluster.create(service())
        assert addresses(cluster) == {"IPv4 http": ["10.0.0.1"]}

        def select(value: Object) -> None:
            value["spec"]["selector"] = {"app": "db"}

        cluster.verbs.modify(SERVICES, "default", "db", select)
        [own] = slices(cluster)  # that of the Service itself
        managed = own["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]
        assert managed == "endpointslice-controller.k8s.io"


def test_ends_with_the_service_and_repairs_what_others_change() -> None:
    with virtual_cluster() as cluster:
        cluster.create(service(), endpoints(subset("10.0.0.1")))
        [one] = slices(cluster)
        name = one["metadata"]["name"]
        cluster.verbs.modify(
            ENDPOINT_SLICES, "default", name, lambda value: {**value, "endpoints": []}
        )
        assert addresses(cluster) == {"IPv4 http": ["10.0.0.1"]}
        cluster.verbs.delete(ENDPOINT_SLICES, "default", name)
        assert addresses(cluster) == {"IPv4 http": ["10.0.0.1"]}
        cluster.verbs.delete(SERVICES, "default", "db")
        assert slices(cluster) == []


def test_says_that_addresses_were_left_out() -> None:
    with virtual_cluster() as cluster:
        many = [f"10.0.{number // 250}.{number % 250 + 1}" for number in range(1002)]
        cluster.create(service(), endpoints(subset(*many)))
        [one] = slices(cluster)
        assert len(one["endpoints"]) == 1000
        [told] = {event["message"] for event in cluster.events("TooManyAddressesToMirror")}
        assert told.endswith("per Endpoints subset. 2 addresses were skipped")

"""The rig itself: a real control plane starts, is hurt as told, and its trail is read right."""

from __future__ import annotations

import http.client
import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.controlplane.admin import ApiFailure, Object
from tests.controlplane.build import ControlPlaneError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import audit, binds, removals
from tests.controlplane.objects import node, nodes, pod, pods, priority_class
from tests.controlplane.users import User
from tests.controlplane.waiting import wait_until


def wait_until_bound(control_plane: ControlPlane, count: int) -> None:
    wait_until(
        lambda: audit(control_plane).bound == count,
        what=f"{count} pods are bound",
    )


# --- a cluster ---------------------------------------------------------------------------------


def test_rig_serves_nodes_and_pods_to_kubectl(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create_many(nodes(3, zones=3))
    control_plane.apply(
        f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m, namespace: {namespace}}}}}"
    )
    assert control_plane.kubectl("get", "nodes", "-o=name").split() == [
        "node/node-00000",
        "node/node-00001",
        "node/node-00002",
    ]
    control_plane.admin.create(pod("web", namespace=namespace))
    listed = control_plane.kubectl("get", "pods,configmaps", f"-n={namespace}", "-o=name")
    assert listed.split() == ["pod/web", "configmap/m"]


def test_rig_runs_the_real_kube_scheduler(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create_many(nodes(3))
    control_plane.kube_scheduler()
    control_plane.admin.create_many(pods(20, namespace=namespace))
    wait_until_bound(control_plane, 20)
    found, trail = audit(control_plane, namespace), binds(control_plane, namespace)
    assert (found.broken, found.unbound) == ((), ())
    assert {(bind.code, bind.user) for bind in trail} == {(201, "system:kube-scheduler")}
    placed = control_plane.admin.list("Pod", namespace)
    assert {(bind.uid, bind.node) for bind in trail} == {
        (each["metadata"]["uid"], each["spec"]["nodeName"]) for each in placed
    }


def test_rig_takes_a_configuration_for_kube_scheduler(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create(node("only"))
    control_plane.kube_scheduler({"profiles": [{"schedulerName": "other"}]})
    control_plane.admin.create(pod("left-alone", namespace=namespace))
    control_plane.admin.create(pod("taken", namespace=namespace, scheduler="other"))
    wait_until_bound(control_plane, 1)
    assert audit(control_plane, namespace).unbound == (f"{namespace}/left-alone",)


def test_rig_notices_overcommitted_nodes(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create_many([node("full", cpu="1", pods=3), node("roomy")])
    control_plane.admin.create_many(
        pods(3, node="full", cpu="400m", memory="", namespace=namespace)
    )
    assert audit(control_plane).overcommitted == ("full: 1.2 of 1 cpu",)


def test_rig_goes_on_after_a_rest(control_plane: ControlPlane) -> None:
    control_plane.admin.create(node("before"))
    control_plane.rest()
    for program in (control_plane.apiserver, control_plane.etcd):
        wait_until(partial(is_paused, program.pid), what=f"{program.name} stands still")
    control_plane.wake()
    control_plane.admin.create(node("after"))
    assert control_plane.kubectl("get", "nodes", "-o=name").split() == ["node/after", "node/before"]


def is_paused(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


# One object of each kind that tests make, as kubectl takes them; in a namespace, if they can be.
SWEPT = """
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: swept},
 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: ReplicationController, metadata: {name: swept},
 spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: swept},
 spec: {selector: {matchLabels: {a: b}},
        template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: swept},
 spec: {serviceName: s, selector: {matchLabels: {a: b}},
        template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: swept}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: swept}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: swept},
 spec: {spec: {}}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: swept}}
---
{apiVersion: v1, kind: Event, metadata: {name: swept, namespace: default},
 involvedObject: {namespace: default}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: swept}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: swept}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: swept},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: swept}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: swept},
 spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /p}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: swept}, provisioner: p}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: swept}, spec: {drivers: []}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: swept}, spec: {}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: swept},
 spec: {driver: d, allNodes: true, pool: {name: p, resourceSliceCount: 1}}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: swept}}
"""


def test_rig_sweeps_up_after_a_test(control_plane: ControlPlane, namespace: str) -> None:
    kept = control_plane.kubectl("get", "namespaces,priorityclasses,clusterroles", "-o=name")
    account = control_plane.add_service_account("robot", namespace)
    control_plane.grant(account, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    control_plane.admin.create(priority_class("urgent", 10))
    control_plane.admin.create_many([node("n"), pod("p", namespace=namespace, node="n")])
    control_plane.kubectl("create", "--filename=-", stdin=SWEPT)
    kinds = {(each["apiVersion"], each["kind"]) for each in yaml.safe_load_all(SWEPT)}
    scheduler, proxy = control_plane.kube_scheduler(), control_plane.proxy()
    control_plane.reset()
    for version, kind in kinds | {("v1", "Pod"), ("v1", "Node"), ("v1", "ServiceAccount")}:
        found = control_plane.admin.list(f"{version}/{kind}")
        assert [each for each in found if not is_in_kube_namespace(each)] == []
    left = control_plane.kubectl("get", "namespaces,priorityclasses,clusterroles", "-o=name")
    assert set(kept.split()) - set(left.split()) == {f"namespace/{namespace}"}
    assert set(left.split()) <= set(kept.split())
    assert not scheduler.is_alive
    with pytest.raises(ConnectionRefusedError):
        control_plane.api_for(server=proxy.url).text("GET", "/readyz")


def is_in_kube_namespace(value: Object) -> bool:
    return str(value["metadata"].get("namespace", "")).startswith("kube-")


# --- users -------------------------------------------------------------------------------------

MAY_LIST_NODES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]


@pytest.mark.parametrize("embedded", [False, True])
def test_users_may_do_what_they_are_granted(control_plane: ControlPlane, embedded: bool) -> None:
    def may_list(user: User) -> bool:
        config = control_plane.kubeconfig_for(user, embedded=embedded)
        try:
            control_plane.kubectl("get", "nodes", f"--kubeconfig={config}")
        except ControlPlaneError as error:
            if "Forbidden" not in str(error):
                raise
            return False
        return True

    person = control_plane.add_user("alice", groups=["people"])
    account = control_plane.add_service_account("robot")
    assert not may_list(person)
    assert not may_list(account)
    role = control_plane.grant(person, MAY_LIST_NODES)
    control_plane.grant(account, MAY_LIST_NODES)
    wait_until(lambda: may_list(person) and may_list(account), what="the rules are known")
    control_plane.revoke(role)
    wait_until(lambda: not may_list(person), what="the rule is gone")


def test_revoked_tokens_are_refused(control_plane: ControlPlane) -> None:
    account = control_plane.add_service_account("robot")
    worthless = control_plane.kubeconfig_for(account, embedded=True)
    control_plane.renew_token(account, revoke=True)
    whoami = ("auth", "whoami", "-o=jsonpath={.status.userInfo.username}")
    assert control_plane.kubectl(*whoami, user=account) == account.name
    with pytest.raises(ControlPlaneError, match=r"Unauthorized|logged in"):
        control_plane.kubectl(*whoami, f"--kubeconfig={worthless}")


# --- the trail ---------------------------------------------------------------------------------


def test_trail_tells_who_bound_and_who_deleted(control_plane: ControlPlane, namespace: str) -> None:
    admin = control_plane.admin
    admin.create_many([node("a"), node("b")])
    made = admin.create(pod("p", namespace=namespace))
    admin.bind(namespace, "p", "a", made["metadata"]["uid"])
    with pytest.raises(ApiFailure) as second:
        admin.bind(namespace, "p", "b")
    assert second.value.code == 409
    admin.delete("Pod", "p", namespace)
    first, refused = binds(control_plane, namespace)
    assert (first.node, first.code, first.uid) == ("a", 201, made["metadata"]["uid"])
    assert (refused.node, refused.code, refused.uid) == ("b", 409, "")
    (removal,) = removals(control_plane, namespace)
    assert (removal.key, removal.code, removal.user) == (f"{namespace}/p", 200, "rig-token")
    assert first.time <= refused.time <= removal.time
    assert audit(control_plane, namespace).double_binds == ()


# --- a bad network -----------------------------------------------------------------------------


def test_proxy_cuts_replies_of_binds_that_were_done(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create(node("a"))
    control_plane.admin.create(pod("p", namespace=namespace))
    proxy = control_plane.proxy()
    proxy.faults.cut_bind_replies = 1.0
    api = control_plane.api_for(server=proxy.url)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError, ssl.SSLError)):
        api.bind(namespace, "p", "a")
    assert api.get("Pod", "p", namespace)["spec"]["nodeName"] == "a"
    assert proxy.bind_replies_cut == [f"{namespace}/p"]
    assert [bind.code for bind in binds(control_plane, namespace)] == [201]


def test_kube_scheduler_gets_through_a_bad_network(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(nodes(3))
    proxy = control_plane.proxy(seed=1)
    proxy.faults.cut_bind_replies = 0.3
    proxy.faults.throttle = 0.1
    proxy.faults.cut_watches_every = 0.5
    control_plane.kube_scheduler(server=proxy.url)
    control_plane.admin.create_many(pods(40, namespace=namespace))
    wait_until_bound(control_plane, 40)
    assert audit(control_plane, namespace).broken == ()
    assert 0 < proxy.counters["bind replies cut"] == len(proxy.bind_replies_cut) < 40
    assert {bind.user for bind in binds(control_plane, namespace)} == {"system:kube-scheduler"}


def test_proxy_throttles_all_but_binds(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create_many([node("a"), pod("p", namespace=namespace)])
    proxy = control_plane.proxy()
    api = control_plane.api_for(server=proxy.url)
    api.list("Node")
    proxy.faults.throttle, proxy.faults.retry_after = 1.0, 7
    with pytest.raises(ApiFailure) as refused:
        api.list("Node")
    api.bind(namespace, "p", "a")
    assert (refused.value.code, refused.value.headers["Retry-After"]) == (429, "7")
    assert proxy.counters["throttled"] == 1


def test_proxy_fails_binds_that_then_were_not_done(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many([node("a"), pod("p", namespace=namespace)])
    proxy = control_plane.proxy()
    api = control_plane.api_for(server=proxy.url)
    api.get("Pod", "p", namespace)
    proxy.faults.fail_binds = 1.0
    with pytest.raises(ApiFailure, match="500 InternalError"):
        api.bind(namespace, "p", "a")
    assert binds(control_plane, namespace) == []


def test_proxy_cuts_watches(control_plane: ControlPlane) -> None:
    proxy = control_plane.proxy()
    api = control_plane.api_for(server=proxy.url)
    with ThreadPoolExecutor() as threads:
        watch = threads.submit(api.text, "GET", "/api/v1/nodes?watch=true")
        wait_until(proxy.cut_watches, what="a watch could be cut")
        with pytest.raises((http.client.IncompleteRead, OSError)):
            watch.result(30)
        assert api.list("Node") == []


def test_watches_through_a_lagging_proxy_lose_nothing(control_plane: ControlPlane) -> None:
    version = control_plane.admin.request("GET", "/api/v1/nodes")["metadata"]["resourceVersion"]
    control_plane.admin.create_many(nodes(5))
    proxy = control_plane.proxy()
    proxy.faults.watch_lag = 1.5  # the server ends the watch before anything of it is delivered
    asked = f"/api/v1/nodes?watch=true&timeoutSeconds=1&resourceVersion={version}"
    watched = control_plane.api_for(server=proxy.url).text("GET", asked)
    assert watched.count(b'"ADDED"') == 5


def test_nothing_comes_out_of_a_black_hole_until_it_heals(control_plane: ControlPlane) -> None:
    proxy = control_plane.proxy()
    api = control_plane.api_for(server=proxy.url)
    with ThreadPoolExecutor() as threads:
        api.list("Node")
        before = proxy.counters["requests"]
        proxy.black_hole()
        old = threads.submit(api.list, "Node")
        new = threads.submit(api.list, "Node")
        wait_until(lambda: proxy.counters["connections"] == 2, what="both knock")
        assert not old.done()
        assert not new.done()
        assert proxy.counters["requests"] == before
        proxy.heal()
        assert old.result(30) == new.result(30) == []


def test_proxy_refuses_connections_until_it_heals(control_plane: ControlPlane) -> None:
    proxy = control_plane.proxy()
    api = control_plane.api_for(server=proxy.url)
    api.list("Node")
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        api.list("Node")
    proxy.heal()
    assert api.list("Node") == []


# --- a bad day for the programs ----------------------------------------------------------------


def test_cluster_survives_what_is_done_to_its_programs(
    durable_control_plane: ControlPlane,
) -> None:
    cluster = durable_control_plane
    cluster.admin.create_many(nodes(3))

    cluster.apiserver.kill()
    with pytest.raises(ConnectionRefusedError):
        cluster.admin.list("Node")
    cluster.apiserver.start().wait_ready()
    assert len(cluster.admin.list("Node")) == 3

    cluster.etcd.pause()
    with pytest.raises(ControlPlaneError, match=r"[Tt]imeout|deadline"):
        cluster.kubectl("create", "namespace", "stuck", "--request-timeout=1s")
    cluster.etcd.resume()
    assert "free" in cluster.kubectl("create", "namespace", "free")

    cluster.etcd.restart()
    wait_until(lambda: _nodes_seen(cluster) == 3, what="the API server finds etcd again")


def test_serving_certificate_is_rotated_while_it_runs(durable_control_plane: ControlPlane) -> None:
    cluster = durable_control_plane
    embedded = cluster.kubeconfig_for(cluster.admin_user, embedded=True)
    serials = [cluster.served_serial(), cluster.rotate_serving_certificate()]
    cluster.kubectl("get", "nodes", f"--kubeconfig={embedded}")
    serials.append(cluster.rotate_serving_certificate(new_authority=True))
    assert len(set(serials)) == 3
    cluster.kubectl("get", "nodes")  # reads the file with the authorities anew
    with pytest.raises(ControlPlaneError, match="certificate signed by unknown authority"):
        cluster.kubectl("get", "nodes", f"--kubeconfig={embedded}")


def test_two_clusters_know_nothing_of_each_other(
    control_plane: ControlPlane, durable_control_plane: ControlPlane
) -> None:
    control_plane.admin.create(node("here"))
    assert durable_control_plane.admin.list("Node") == []


def _nodes_seen(control_plane: ControlPlane) -> int:
    try:
        return len(control_plane.admin.list("Node"))
    except (ApiFailure, OSError):
        return -1

"""The objects that a cluster starts with."""

from __future__ import annotations

import json

from tests.cluster.apiserver.make_roles import describe
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import wait_until

from mooring.cluster.apiserver.bootstrap import (
    ROLES_FILE,
    bootstrap,
    create_roles,
    publish_address,
)
from mooring.cluster.apiserver.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES, known
from mooring.cluster.apiserver.server import ApiServer

CLUSTER_ROLES = known("clusterroles", "rbac.authorization.k8s.io")
KUBERNETES = ("default", "kubernetes")


def test_has_the_service_of_the_real_server(real_server: ControlPlane) -> None:
    ours = ApiServer().verbs.get(SERVICES, *KUBERNETES)
    path = "/api/v1/namespaces/default/services"
    wait_until(lambda: real_server.admin.request("GET", path)["items"], what="the Service is there")
    theirs = real_server.admin.request("GET", f"{path}/kubernetes")
    assert ours["metadata"]["labels"] == theirs["metadata"]["labels"]
    for spec in (ours["spec"], theirs["spec"]):
        for port in spec["ports"]:
            del port["targetPort"]
    assert ours["spec"] == theirs["spec"]


def test_has_the_roles_of_the_real_server(real_server: ControlPlane) -> None:
    assert json.loads(ROLES_FILE.read_text()) == json.loads(
        json.dumps(describe(real_server.admin), sort_keys=True)
    )


def test_lets_people_edit_the_role_of_the_scheduler() -> None:
    verbs = ApiServer().verbs
    create_roles(verbs)
    verbs.modify(CLUSTER_ROLES, "", "system:kube-scheduler", lambda role: {**role, "rules": []})
    create_roles(verbs)
    bootstrap(verbs)
    assert verbs.get(CLUSTER_ROLES, "", "system:kube-scheduler")["rules"] == []


def test_tells_where_the_server_listens() -> None:
    verbs = ApiServer().verbs
    for port in (1234, 5678):  # again after a restart
        publish_address(verbs, f"https://127.0.0.1:{port}")
        [subset] = verbs.get(ENDPOINTS, *KUBERNETES)["subsets"]
        assert subset["addresses"] == [{"ip": "127.0.0.1"}]
        assert [one["port"] for one in subset["ports"]] == [port]
        [slice_port] = verbs.get(ENDPOINT_SLICES, *KUBERNETES)["ports"]
        assert slice_port["port"] == port
        service = verbs.get(SERVICES, *KUBERNETES)
        assert service["spec"]["ports"][0]["targetPort"] == port

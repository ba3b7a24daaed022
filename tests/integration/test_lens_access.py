"""/lens/v1/ on a real kube-apiserver: its RBAC decides who sees explanations and snapshots."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from msgspec import structs
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import nodes, pod
from tests.controlplane.users import User
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import wait_for_event
from tests.integration.mooring_process import NAME, Mooring, start_mooring

from mooring.client.server_access import ServerAccess, find_server, get
from mooring.lens.reading import read_snapshot, snapshot_of

SNAPSHOT = "/lens/v1/snapshot"
LIST_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
LIST_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
ANY_LENS_PATH = {"nonResourceURLs": ["/lens/*"], "verbs": ["*"]}


def test_only_callers_that_may_list_pods_and_nodes_everywhere_see_anything(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    control_plane.admin.create_many(nodes(3))
    control_plane.admin.create(pod("huge", namespace=namespace, scheduler=NAME, cpu="64"))
    opened = "--authorization-always-allow-paths=/healthz,/readyz,/lens/*"  # makes no difference
    mooring = start_mooring(control_plane, flags=(opened,))
    wait_for_event(control_plane, namespace, "huge", "FailedScheduling")
    explain = f"/lens/v1/pods/{namespace}/huge/explain"

    def account(name: str, *rules: dict[str, list[str]], where: str = "") -> User:
        user = control_plane.add_service_account(name)
        if rules:
            control_plane.grant(user, list(rules), where)
        return user

    strangers = {
        "of-one-namespace": account("of-one-namespace", LIST_PODS, where=namespace),
        "of-nodes": account("of-nodes", LIST_NODES, ANY_LENS_PATH),
        "of-pods": account("of-pods", LIST_PODS, ANY_LENS_PATH),
    }
    reader = account("cluster-reader", LIST_PODS, LIST_NODES)
    for path in (explain, SNAPSHOT, "/lens/v1/pods/default/nobody/explain"):
        assert mooring.get(path).code == 401
        assert mooring.get(path, "no-such-token").code == 401
        for name, user in strangers.items():
            refused = mooring.get(path, token_of(user))
            assert refused.code == 403, name
            status = json.loads(refused.text)
            missing = "nodes" if name == "of-pods" else "pods"
            assert status["message"] == (
                f'forbidden: User "system:serviceaccount:default:{name}" cannot list {missing}'
                " in all namespaces, which this path needs"
            )
            assert "huge" not in refused.text.replace(path, "")

    os.kill(mooring.process.pid, signal.SIGUSR2)
    shown = mooring.get(explain, token_of(reader))
    assert shown.code == 200
    found = json.loads(shown.text)
    assert (found["pod"], found["feasible"]) == (f"{namespace}/huge", 0)
    assert found["queue"]["queue"] == "unschedulable"
    assert mooring.get(explain.replace("huge", "nobody"), token_of(reader)).code == 404
    taken = asyncio.run(fetched(mooring, SNAPSHOT, ServerAccess(token=token_of(reader))))
    snapshot = snapshot_of(taken, "the scheduler")
    assert len(snapshot.cluster.nodes) == 3
    assert "huge" in {one.metadata.name for one in snapshot.cluster.pods}
    # As kubectl's user, too: by the client certificate of a kubeconfig.
    admin = str(control_plane.kubeconfig_for(control_plane.admin_user))
    wait_until(
        lambda: asyncio.run(fetched(mooring, explain, ServerAccess(kubeconfig=admin))),
        what="certificates are trusted",
    )
    told = mooring_command(mooring, reader, "explain", f"{namespace}/huge", "-o", "json")
    assert told.returncode == 3, told.stderr  # fits nowhere
    explained = json.loads(told.stdout)
    assert explained["queue"]["wakes_on"]
    assert explained["remedies"]
    rejected = mooring_command(mooring, strangers["of-nodes"], "explain", f"{namespace}/huge")
    assert rejected.returncode == 1
    assert rejected.stderr.count("\n") == 1
    assert "cannot list pods in all namespaces" in rejected.stderr
    file = tmp_path / "cluster.snap.gz"
    assert mooring_command(mooring, reader, "snapshot", "-o", str(file)).returncode == 0
    assert len(read_snapshot(file).cluster.nodes) == 3
    wait_until(lambda: "Dump of scheduling queue" in mooring.log, what="SIGUSR2 is obeyed")
    assert "Node name: node-00000" in mooring.log
    assert "Cache mismatch" not in mooring.log


def test_nothing_is_shown_while_requests_can_not_be_reviewed(control_plane: ControlPlane) -> None:
    """A scheduler that may do its work but not ask about its callers."""
    user = control_plane.add_user("no-reviews")
    rules = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
    ]
    control_plane.grant(user, rules)
    mooring = start_mooring(control_plane, user=user, wait=False)
    wait_until(lambda: mooring.get("/healthz").code == 200, what="it serves")
    refused = mooring.get(SNAPSHOT, control_plane.token)
    assert refused.code == 500
    assert "could not review this request" in refused.text


async def fetched(mooring: Mooring, path: str, access: ServerAccess) -> bytes:
    trusting = structs.replace(access, insecure_skip_tls_verify=True)
    endpoint = find_server(f"https://127.0.0.1:{mooring.port}", trusting)
    return await get(endpoint, path, user_agent="test")


def mooring_command(mooring: Mooring, user: User, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of `mooring` that asks the running scheduler."""
    source = ("--from", f"https://127.0.0.1:{mooring.port}", "--token", token_of(user))
    command = [sys.executable, "-m", "mooring", *words, *source, "--insecure-skip-tls-verify"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def token_of(user: User) -> str:
    assert user.token_file is not None
    return user.token_file.read_text()

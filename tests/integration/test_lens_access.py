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
from tests.controlplane.objects import namespace as named
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
READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
ANY_LENS_PATH = {"nonResourceURLs": ["/lens/*"], "verbs": ["*"]}


def test_what_callers_see_follows_what_they_may_list(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    control_plane.admin.create_many(nodes(3))
    control_plane.admin.create(named("treasury"))
    control_plane.admin.create(pod("vault", namespace="treasury", scheduler=NAME, cpu="64"))
    control_plane.admin.create(pod("huge", namespace=namespace, scheduler=NAME, cpu="64"))
    control_plane.admin.create(pod("small", namespace=namespace, scheduler=NAME, cpu="1"))
    opened = "--authorization-always-allow-paths=/healthz,/readyz,/lens/*"  # makes no difference
    journal = f"--record-journal={tmp_path / 'journal'}"
    mooring = start_mooring(control_plane, flags=(opened, journal))
    wait_for_event(control_plane, namespace, "huge", "FailedScheduling")
    wait_for_event(control_plane, "treasury", "vault", "FailedScheduling")
    wait_for_event(control_plane, namespace, "small", "Scheduled")
    explain = f"/lens/v1/pods/{namespace}/huge/explain"

    def account(name: str, *rules: dict[str, list[str]], where: str = "") -> User:
        user = control_plane.add_service_account(name)
        if rules:
            control_plane.grant(user, list(rules), where)
        return user

    strangers = {
        "of-one-namespace": account("of-one-namespace", READ_PODS, where=namespace),
        "of-nodes": account("of-nodes", LIST_NODES, ANY_LENS_PATH),
        "of-pods": account("of-pods", LIST_PODS, ANY_LENS_PATH),
        "of-nothing": account("of-nothing", ANY_LENS_PATH),
    }
    reader = account("cluster-reader", LIST_PODS, LIST_NODES)
    paths = {
        "state": "/lens/v1/state",
        "queue": "/lens/v1/queue",
        "records": "/lens/v1/records",
        "node": "/lens/v1/nodes/node-00000",
        "explain": explain,
        "placed": explain.replace("huge", "small"),
        "foreign": "/lens/v1/pods/treasury/vault/explain",
        "matrix": f"{explain}?depth=matrix",
        "past": f"{explain}?at=1",
        "snapshot": SNAPSHOT,
    }
    sees = {
        "of-one-namespace": {"state", "queue", "records", "explain", "placed"},
        "of-nodes": {"state", "queue", "node"},
        "of-pods": {"state", "queue", "records", "explain", "placed", "foreign"},
        "of-nothing": set(),
    }
    hidden = {
        "of-one-namespace": ("vault", "treasury", "node-0000"),
        "of-nodes": ("vault", "treasury", "huge", "small"),
        "of-pods": ("node-0000",),
        "of-nothing": ("vault", "huge", "small", "node-0000"),
    }
    for path in paths.values():
        assert mooring.get(path).code == 401
        assert mooring.get(path, "no-such-token").code == 401
    for name, user in strangers.items():
        own = f"?namespace={namespace}" if name == "of-one-namespace" else ""
        visible = set()
        for what, path in paths.items():
            asked = path if "?" in path or "/pods/" in path else path + own
            answer = mooring.get(asked, token_of(user))
            assert answer.code in (200, 403), (name, what, answer)
            if answer.code == 200:
                visible.add(what)
            text = answer.text.replace(namespace, "").replace(path, "")
            for word in hidden[name]:
                assert word not in text, (name, what, word)
        assert visible == sees[name], name
    # Without its namespace, or with another, a reader of one namespace sees nothing.
    lone = token_of(strangers["of-one-namespace"])
    for path in ("/lens/v1/state", "/lens/v1/queue?namespace=treasury"):
        assert mooring.get(path, lone).code == 403
    refused = json.loads(mooring.get(explain, token_of(strangers["of-nothing"])).text)
    assert refused["message"] == (
        'forbidden: User "system:serviceaccount:default:of-nothing" cannot list pods'
        " in all namespaces, which this path needs"
    )
    for what, path in paths.items():
        if what not in ("snapshot", "past"):
            assert mooring.get(path, token_of(reader)).code == 200, what
    # An attempt as it was: from the journal, by its number.
    records = mooring.get(f"/lens/v1/records?pod={namespace}/huge", token_of(reader))
    seq = min(row["seq"] for row in json.loads(records.text)["rows"])

    def past() -> dict[str, object] | None:
        answer = mooring.get(f"{explain}?at={seq}&depth=remedies", token_of(reader))
        assert answer.code == 200 or "or not yet" in answer.text, answer
        found: dict[str, object] = json.loads(answer.text)
        return found if answer.code == 200 else None

    then = wait_until(past, what="the attempt is in the journal")
    assert then is not None
    assert (then["pod"], then["exactness"], then["feasible"]) == (f"{namespace}/huge", "exact", 0)
    other = mooring.get(explain.replace("huge", "small") + f"?at={seq}", token_of(reader))
    assert f"attempt {seq} was made for {namespace}/huge" in other.text
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
    assert "cannot list pods and nodes in all namespaces" in rejected.stderr
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

"""A right that is missing is named, in the log and by /readyz, and nothing has to be restarted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import node, pod
from tests.controlplane.users import Rules, User, role_and_binding
from tests.controlplane.waiting import wait_until
from tests.event_loop import run
from tests.integration.cluster_reads import wait_for_condition, wait_until_bound
from tests.integration.mooring_process import (
    NAME,
    Mooring,
    grant_shipped,
    shipped_rules,
    start_mooring,
)

from mooring.client.client import ApiClient
from mooring.client.http import HttpTransport
from mooring.client.kubeconfig import load_kubeconfig
from mooring.client.permissions import Permission, PermissionCheck

ELECTED = {"leaderElection": {"leaderElect": True, "resourceName": NAME}}
OFTEN = ("--permission-check-interval=200ms",)


class Right(NamedTuple):
    """One verb of one rule that we ship, and the sentence that names it."""

    kind: str  # of the role
    rule: int
    verb: str
    sentence: str


ROUNDS = 8  # in each, every eighth right is missing: never two of one rule


def test_every_right_that_is_taken_away_is_named_until_it_is_back(
    control_plane: ControlPlane, namespace: str
) -> None:
    user = somebody_new(control_plane, namespace)
    roles = Roles(control_plane, user)
    mooring = start_mooring(control_plane, user=user, config=ELECTED, flags=OFTEN)
    shipped = list(rights())
    for number in range(ROUNDS):
        missing = shipped[number::ROUNDS]
        roles.grant_all_but(*missing)
        # That no others are named means that those of the round before are healed.
        problem = wait_until_told(mooring, missing)
        answer = mooring.get("/readyz")
        assert answer.code == 500
        assert f"[-]permissions failed: {problem}\n" in answer.text
        assert mooring.get("/healthz").code == 200
    roles.grant_all_but()
    wait_until(lambda: mooring.is_ready, what="everything is well again")

    lines = mooring.log.splitlines()
    for right in shipped:
        named = f'permission="{quoted(right.sentence)}"'
        told = [line for line in lines if named in line]
        said = [line.split('"')[1] for line in told]
        assert said == ["permission missing", "permission restored"]
        assert all(f'verb="{right.verb}"' in line for line in told)
    assert len(shipped) > 40
    assert "Traceback" not in mooring.log


def test_pods_are_bound_once_the_right_to_bind_is_there(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create(node("only"))
    user = somebody_new(control_plane, namespace)
    roles = Roles(control_plane, user)
    bind = next(right for right in rights() if right.sentence == "create pods/binding")
    roles.grant_all_but(bind)
    mooring = start_mooring(control_plane, user=user, flags=OFTEN, wait=False)
    control_plane.admin.create(pod("waits", namespace=namespace, scheduler=NAME))
    known = wait_for_condition(control_plane, namespace, "waits", "PodScheduled", "SchedulerError")
    assert 'cannot create resource "pods/binding"' in known["message"]
    # A right is looked up some time after it was found to be missing.
    wait_until(
        lambda: "create pods/binding" in mooring.get("/readyz").text, what="it says what is missing"
    )
    roles.grant_all_but()
    wait_until_bound(control_plane, namespace, "waits")
    wait_until(lambda: mooring.is_ready, what="it is ready")


def test_process_without_any_right_waits_for_them(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create(node("only"))
    control_plane.admin.create(pod("waits", namespace=namespace, scheduler=NAME))
    user = somebody_new(control_plane, namespace)
    mooring = start_mooring(control_plane, user=user, config=ELECTED, flags=OFTEN, wait=False)
    wait_until(
        lambda: "create pods/binding" in mooring.get("/readyz").text, what="it says what is missing"
    )
    text = mooring.get("/readyz").text
    for right in rights():
        assert right.sentence in text
    assert "[-]sched-handler-sync failed: handlers are not fully synchronized: nodes" in text
    assert "cannot list nodes: " in text
    assert mooring.get("/healthz").text == "ok"
    assert mooring.get("/livez").text == "ok"
    grant_shipped(control_plane, user)
    wait_until(lambda: mooring.is_ready, 60, what="it is ready")
    wait_until_bound(control_plane, namespace, "waits")
    assert mooring.process.is_alive


# --- one review of rules in the place of many ---------------------------------------------------

LIST_PODS, LIST_NODES = Permission("list", "pods"), Permission("list", "nodes")
BIND = Permission("create", "pods", subresource="binding")
GET_LEASE = Permission("get", "leases", "coordination.k8s.io", "", "kube-system", NAME)
ALL = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
ON_LEASES = {"verbs": ["get"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}


@pytest.mark.parametrize(
    ("everywhere", "in_kube_system", "missing", "by_rules"),
    [
        (ALL, [], [], 4),
        ([], ALL, [LIST_PODS, LIST_NODES, BIND], 0),  # a binding in a namespace grants no more
        ([], [], [LIST_PODS, LIST_NODES, BIND, GET_LEASE], 0),
        ([{**ALL[0], "resources": ["pods", "*/binding"]}], [], [LIST_NODES, GET_LEASE], 2),
        ([{**ALL[0], "resources": ["pods/*", "nodes"]}], ALL, [LIST_PODS, BIND], 1),
        ([{**ALL[0], "resourceNames": [NAME]}], [], [LIST_PODS, LIST_NODES, BIND], 1),
        ([{**ON_LEASES, "resourceNames": ["x"]}], [ON_LEASES], [LIST_PODS, LIST_NODES, BIND], 0),
        ([{**ALL[0], "apiGroups": [""]}], [], [GET_LEASE], 3),
    ],
)
def test_rules_of_the_cluster_prove_what_the_server_says_when_asked_one_by_one(
    control_plane: ControlPlane,
    namespace: str,
    everywhere: Rules,
    in_kube_system: Rules,
    missing: list[Permission],
    by_rules: int,
) -> None:
    user = somebody_new(control_plane, namespace)
    control_plane.grant(user, everywhere)
    control_plane.grant(user, in_kube_system, "kube-system")
    needed = [LIST_PODS, LIST_NODES, BIND, GET_LEASE]

    async def ask(*, one_by_one: bool) -> tuple[list[Permission], int]:
        sent: list[int] = []

        def note(method: str, host: str, code: int, seconds: float) -> None:
            sent.append(code)

        endpoint = load_kubeconfig(str(control_plane.kubeconfig_for(user)))
        transport = HttpTransport(endpoint, user_agent="mooring", on_answer=note)
        check = PermissionCheck(ApiClient(transport), needed)
        try:
            await check.ask_all(one_by_one=one_by_one)
        finally:
            await transport.close()
        assert not check.unanswered
        return list(check.missing), len(sent)

    asked = (missing, len(needed))
    wait_until(lambda: run(ask(one_by_one=True)) == asked, what="the server knows its roles")
    assert run(ask(one_by_one=False)) == (missing, 1 + len(needed) - by_rules)


# --- the roles that we ship ---------------------------------------------------------------------


def somebody_new(control_plane: ControlPlane, namespace: str) -> User:
    """Rights in kube-system outlive the test that gave them, so nobody else may have the name."""
    return control_plane.add_user(f"scheduler-of-{namespace}")


class Roles:
    """Our ClusterRole and Role, granted to somebody, as they are or with one verb missing."""

    def __init__(self, control_plane: ControlPlane, user: User) -> None:
        self._admin = control_plane.admin
        self._names = {"ClusterRole": "", "Role": "kube-system"}
        self._made: dict[str, dict[str, Any]] = {}
        for kind, namespace in self._names.items():
            name = control_plane.grant(user, shipped_rules(kind), namespace)
            self._made[kind], _ = role_and_binding(name, user, shipped_rules(kind), namespace)

    def grant_all_but(self, *missing: Right) -> None:
        for kind, role in self._made.items():
            taken = {(right.rule, right.verb) for right in missing if right.kind == kind}
            rules = []
            for index, rule in enumerate(shipped_rules(kind)):
                if verbs := [verb for verb in rule["verbs"] if (index, verb) not in taken]:
                    rules.append({**rule, "verbs": verbs})
            if rules != role["rules"]:
                role["rules"] = rules
                self._admin.replace(role)


def rights() -> Iterator[Right]:
    for kind, where in (("ClusterRole", ""), ("Role", ' in namespace "kube-system"')):
        for index, rule in enumerate(shipped_rules(kind)):
            (group,), (path,) = rule["apiGroups"], rule["resources"]
            resource, slash, part = path.partition("/")
            resource += f".{group}" if group else ""
            name = "".join(f' "{name}"' for name in rule.get("resourceNames", ()))
            for verb in rule["verbs"]:
                sentence = f"{verb} {resource}{slash}{part}{name}{where}"
                yield Right(kind, index, verb, sentence)


def wait_until_told(mooring: Mooring, missing: Sequence[Right]) -> str:
    """Until exactly these are named; what is said."""
    sentences = sorted(right.sentence for right in missing)

    def is_said() -> str:
        text = mooring.get("/readyz/permissions").text
        told = text.removeprefix("internal server error: ").removesuffix("\n")
        named = told.removeprefix("missing permissions: ").split("; ")
        return told if sorted(named) == sentences else ""

    return wait_until(is_said, what=f"/readyz says that these are missing: {sentences}")


def quoted(text: str) -> str:
    return text.replace('"', r"\"")

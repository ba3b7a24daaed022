"""What `mooring doctor` says of nodes, leases, pods and rights of clusters that differ."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.cli.in_process_cluster import command, serving

from mooring.api import core
from mooring.api.meta import Condition, format_time
from mooring.cluster.apiserver._auth import Attributes
from mooring.cluster.apiserver.requests import Caller
from mooring.testing import node, pod

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: mine}]
"""


def ready(name: str, **options: Any) -> core.Node:
    api = node(name, cpu=4, **options).api
    conditions = (Condition(type="Ready", status="True"),)
    return structs.replace(api, status=structs.replace(api.status, conditions=conditions))


class Doctor:
    """Examines a cluster with these objects; the rights of its user are limited by `authorize`."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.config = folder / "config.yaml"
        self.config.write_text(CONFIG)
        self._capsys = capsys

    async def says(self, *objects: Any, **options: Any) -> tuple[int, str]:
        words = ("doctor", "--kubeconfig", self.kubeconfig, "--config", self.config)
        if "authorize" in options:
            options["tokens"] = {"t": Caller(name="jane", groups=())}
        async with serving(self.kubeconfig, *objects, **options):
            code = await command(*words)
        return code, self._capsys.readouterr().out


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(tmp_path, capsys)


def lease(renewed: float, holder: str) -> dict[str, Any]:
    spec = {"leaseDurationSeconds": 60, "renewTime": format_time(renewed, micros=True)}
    if holder:
        spec["holderIdentity"] = holder
    metadata = {"name": "mine", "namespace": "kube-system"}
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    return {**kind, "metadata": metadata, "spec": spec}


async def test_all_is_well_with_a_node_and_a_leader(doctor: Doctor) -> None:
    held = lease(time.time(), "replica-1")
    code, said = await doctor.says(ready("n"), pod("p", cpu=1, scheduler="mine"), held)
    assert code == 0
    assert "kube-system/mine is held by replica-1\n" in said
    assert said.endswith("\nAll is well.\n")


async def test_a_lease_that_was_given_back_has_lapsed(doctor: Doctor) -> None:
    code, said = await doctor.says(ready("n"), lease(time.time(), ""))
    assert code == 0
    assert "kube-system/mine has lapsed: no replica leads\n" in said


async def test_an_empty_cluster_is_a_problem(doctor: Doctor) -> None:
    doctor.config.write_text(f"{CONFIG}leaderElection: {{leaderElect: false}}\n")
    code, said = await doctor.says()
    assert code == 1
    assert "✗ nodes          there are none\n" in said
    assert "✓ lease          leader election is off: run one replica only\n" in said
    assert "✓ plugins        mine: no pod or no node to measure with\n" in said


async def test_nodes_that_no_pod_can_go_to_are_a_problem(doctor: Doctor) -> None:
    code, said = await doctor.says(ready("a", unschedulable=True), node("b"))
    assert code == 1
    assert "✗ nodes          0 of 2 are ready and not cordoned\n" in said


async def test_a_pod_that_waits_for_a_claim_is_measured_all_the_same(doctor: Doctor) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]
    waiting = pod("p", scheduler="mine", spec={"volumes": volumes})
    code, said = await doctor.says(ready("n"), waiting)
    assert code == 0
    assert "for a new kind of pod; most: " in said


def forbids(*resources: str) -> Any:
    def authorize(caller: Caller, asked: Attributes) -> str:
        return "no" if asked.resource in resources else ""

    return authorize


async def test_kinds_that_may_not_be_listed_are_named(doctor: Doctor) -> None:
    closed = forbids("leases", "poddisruptionbudgets")
    code, said = await doctor.says(ready("n"), authorize=closed)
    assert code == 1  # rights are missing
    assert "! rights         poddisruptionbudgets.policy can't be read: " in said
    assert "! names          leases may not be listed\n" in said
    assert "\n✓ lease" not in said


async def test_without_nodes_to_list_there_is_nothing_more_to_say(doctor: Doctor) -> None:
    code, said = await doctor.says(ready("n"), authorize=forbids("nodes"))
    assert code == 1
    assert "✗ rights         no permission: nodes is forbidden" in said
    assert "plugins" not in said


async def test_a_server_that_answers_no_reviews_is_a_warning(doctor: Doctor) -> None:
    closed = forbids("selfsubjectaccessreviews", "selfsubjectrulesreviews")
    code, said = await doctor.says(ready("n"), authorize=closed)
    assert code == 0
    assert "! rights         the server does not say: Forbidden\n" in said
    assert "→ allow selfsubjectaccessreviews\n" in said

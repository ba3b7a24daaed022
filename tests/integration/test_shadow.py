"""`mooring run --shadow` beside the real kube-scheduler, with pods of many kinds.

Where all nodes are looked at, the two differ by ties alone; the shadow reads and never writes.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.admin import Object
from tests.controlplane.objects import nodes, pod
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import wait_until_bound
from tests.integration.mooring_process import Mooring, start_mooring
from tests.observe.parse_exposition import read
from tests.sizes import sized

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
READ_ALL = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
OPEN = "--authorization-always-allow-paths=/healthz,/readyz,/metrics"
NODES = 120  # more than 100: kube-scheduler samples, unless it is told not to
PODS = sized(250)


def mixed(namespace: str, count: int, seed: int) -> list[Object]:
    """Pods with and without rules, of a few apps; each can be scheduled."""
    rng = random.Random(seed)
    found = []
    for index in range(count):
        app = {"app": f"app-{rng.randrange(6)}"}
        selector = {"labelSelector": {"matchLabels": app}}
        spec: dict[str, Any] = {}
        match rng.randrange(6):
            case 0:
                spread = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                spec["topologySpreadConstraints"] = [{**spread, **selector}]
            case 1:
                spread = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"}
                spec["topologySpreadConstraints"] = [{**spread, **selector}]
            case 2:
                term = {"weight": 50, "podAffinityTerm": {"topologyKey": HOST, **selector}}
                preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
                spec["affinity"] = {"podAntiAffinity": preferred}
            case 3:
                zone = {"key": ZONE, "operator": "In", "values": [f"zone-{rng.randrange(3)}"]}
                term = {"weight": 10, "preference": {"matchExpressions": [zone]}}
                preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
                spec["affinity"] = {"nodeAffinity": preferred}
        found.append(
            pod(
                f"p{seed}-{index:04d}",
                namespace=namespace,
                cpu=f"{rng.choice((50, 100, 250))}m",
                memory=f"{rng.choice((64, 128, 500))}Mi",
                labels=app,
                spec=spec,
            )
        )
    return found


def writes_of(control_plane: Plane, user: str) -> list[str]:
    """What the audit log says about a user: it has nothing but writes."""
    lines = (control_plane.folder / "audit.log").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [
        f"{event['verb']} {event['requestURI']}"
        for event in events
        if event["user"]["username"] == user
    ]


def start_shadow(control_plane: Plane, percentage: int | None, report: Path) -> Mooring:
    user = control_plane.add_user("shadow")
    control_plane.grant(user, READ_ALL)
    sampling = {} if percentage is None else {"percentageOfNodesToScore": percentage}
    profiles = [{"schedulerName": "default-scheduler"}]
    return start_mooring(
        control_plane,
        user=user,
        config={"profiles": profiles, **sampling},
        flags=["--shadow", f"--shadow-report={report}", OPEN],
        name="shadow",
    )


@pytest.mark.parametrize("percentage", [100, None], ids=["all nodes", "sampled"])
def test_differences_from_kube_scheduler_are_ties_or_sampling(
    control_plane: Plane, namespace: str, tmp_path: Path, percentage: int | None
) -> None:
    control_plane.admin.create_many(nodes(NODES, zones=3, cpu="8"))
    report = tmp_path / "differences.jsonl"
    shadow = start_shadow(control_plane, percentage, report)
    control_plane.kube_scheduler(
        {} if percentage is None else {"percentageOfNodesToScore": percentage}
    )
    # What waits when a scheduler starts is decided in an order that only the scheduler knows.
    control_plane.admin.create(pod("first", namespace=namespace))
    wait_until_bound(control_plane, namespace, "first")
    pods = mixed(namespace, PODS, seed=percentage or 0)
    impossible = pod("too-large", namespace=namespace, cpu="64")
    control_plane.admin.create_many([*pods, impossible], concurrency=4)
    placed = wait_until_bound(control_plane, namespace, *(p["metadata"]["name"] for p in pods))

    def seen() -> bool:
        return sum(counts(shadow).values()) >= PODS + 2

    wait_until(seen, 60, what="all decisions are compared")
    results = counts(shadow)
    shadow.process.stop()
    assert f"{sum(results.values()):,} decisions of the other scheduler compared" in shadow.log
    differences = [json.loads(line) for line in report.read_text().splitlines()]
    allowed = {"equal", "tie"} if percentage else {"equal", "tie", "sampling"}
    assert set(results) <= allowed, (results, differences)
    assert results["equal"] >= 1
    assert sum(results.values()) >= PODS + 2
    for found in differences:
        assert found["why"], found
        assert placed[found["pod"].partition("/")[2]] == found["theirs"] != found["ours"]
    assert writes_of(control_plane, "shadow") == []


def counts(shadow: Mooring) -> dict[str, int]:
    """How many decisions were compared, by the result."""
    answer = shadow.get("/metrics")
    family = read(answer.text).get("mooring_shadow_comparisons_total")
    if family is None:
        return {}
    return {sample.labels["result"]: int(sample.value) for sample in family.samples}

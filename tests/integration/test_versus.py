"""The benchmark beside kube-scheduler, on a cluster small enough for a test."""

from __future__ import annotations

import resource

import pytest
from bench.versus.measure import measure
from bench.versus.raw import SCHEDULERS
from bench.versus.rig import Rig
from bench.versus.workloads import WORKLOADS

NODES = 3


@pytest.mark.usefixtures("real_programs")
def test_both_schedulers_begin_with_the_same_bytes() -> None:
    name = "churn-pod-status"
    workload = WORKLOADS[name]
    with Rig(NODES) as rig:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert soft == hard, "as many open files as the system allows"
        runs = []
        versions = set()
        for scheduler in SCHEDULERS:
            runs.append(measure(rig, name, workload, scheduler, 1, pods=30, deadline=60.0))
            assert any("containerStatuses" in pod["status"] for pod in rig.plane.admin.list("Pod"))
            rig.set_up(name, workload, 30)
            listed = rig.plane.admin.request("GET", "/api/v1/pods?limit=1")
            versions.add(listed["metadata"]["resourceVersion"])
        assert [(run.bound, run.outcome) for run in runs] == [(30, "")] * 2
        assert all(run.last_bind >= run.first_bind > 0 for run in runs)
        assert all(run.cpu > 0 and run.server_cpu > 0 for run in runs)
        assert len(versions) == 1
        assert {run.events for run in runs} == {30}

        for other in ("churn", "churn-heartbeats", "unschedulable"):
            write = WORKLOADS[other].during
            assert write is not None
            for number in (0, 1, 2, 300, 301, 302):
                write(rig, number)
        assert rig.count("Node") == NODES + 1
        assert rig.count("Service") == 1 + 1  # that of the API server

"""The decorator: what it makes, what it refuses; and the rights that follow."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.cli.in_process_cluster import serving

import mooring.controller
import mooring.framework as fw
from mooring.cache.cache import Cache
from mooring.cluster.apiserver.resources import PODS
from mooring.controller import Election, Options, Runner, controller
from mooring.controller.rbac import cluster_permissions, lease_permissions, rules
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox


@controller(scheduler_name="mine")
def choose(pod: fw.Pod, nodes: fw.Nodes) -> str | None:
    """Take the first."""
    return nodes[0].name if len(nodes) else None


def test_can_still_be_called_as_a_function() -> None:
    assert choose.__name__ == "choose"
    assert inspect.getdoc(choose) == "Take the first."
    assert choose.scheduler_name == "mine"
    assert repr(choose) == "<controller choose of mine>"
    cache = Cache()
    assert choose(pod("p"), cache.nodes) is None
    cache.put_node(node("a").api)
    assert choose(pod("p"), cache.nodes) == "a"


def test_runs_as_a_process_until_it_is_told_to_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig, ready, ended = tmp_path / "kubeconfig", threading.Event(), threading.Event()

    async def cluster() -> str:
        """Where the pod is after the controller has ended."""
        async with serving(kubeconfig, node("n"), pod("p", scheduler="mine")) as running:
            ready.set()
            await asyncio.to_thread(ended.wait)
            item = running.store.get(PODS, "default", "p")
            assert item is not None
            return item.fields["spec.nodeName"]

    @controller(scheduler_name="mine")
    def first(pod: fw.Pod, nodes: fw.Nodes) -> str:
        signal.raise_signal(signal.SIGTERM)
        return nodes[0].name

    with ThreadPoolExecutor(1) as threads:
        place = threads.submit(asyncio.run, cluster())
        ready.wait(30)
        try:
            first.run(kubeconfig=str(kubeconfig))
        finally:
            ended.set()
    assert place.result() == "n"  # what was under way is finished
    said = capsys.readouterr().err
    assert "Successfully bound pod to node" in said
    assert "Requested to terminate, exiting" in said


@pytest.mark.parametrize(
    "options",
    [
        {"scheduler_name": ""},
        {"scheduler_name": "a", "first_retry": 0},
        {"scheduler_name": "a", "first_retry": 2, "longest_retry": 1},
        {"scheduler_name": "a", "at_once": 0},
    ],
)
def test_refuses_what_makes_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        controller(**options)


def test_refuses_a_function_that_does_not_take_a_pod_and_nodes() -> None:
    def lonely(pod: fw.Pod) -> str:
        return ""

    with pytest.raises(TypeError, match=r"lonely: expected a function of a pod and nodes"):
        controller(scheduler_name="a")(lonely)  # type: ignore[arg-type]  # that is the point


def test_asks_for_the_rights_it_needs_and_for_no_others() -> None:
    assert rules(cluster_permissions(reviews=False)) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert rules(lease_permissions("kube-system", "mine")) == [
        {**lease, "verbs": ["create"]},
        {**lease, "resourceNames": ["mine"], "verbs": ["get", "update"]},
    ]


def test_needs_a_lease_only_if_there_are_replicas() -> None:
    with Sandbox() as cluster:
        connect = cluster.cluster.transport
        alone = Runner(choose, connect)
        several = Runner(choose, connect, Options(election=Election(name="mine"), reviews=True))
    needed = set(several.component.permissions.needed) - set(alone.component.permissions.needed)
    assert {str(each) for each in needed} == {
        'create leases.coordination.k8s.io in namespace "kube-system"',
        'get leases.coordination.k8s.io "mine" in namespace "kube-system"',
        'update leases.coordination.k8s.io "mine" in namespace "kube-system"',
        "create tokenreviews.authentication.k8s.io",
        "create subjectaccessreviews.authorization.k8s.io",
    }


def test_offers_what_it_exports() -> None:
    assert mooring.controller.__all__ == sorted(mooring.controller.__all__, key=_as_ruff_does)
    assert all(hasattr(mooring.controller, name) for name in mooring.controller.__all__)


def _as_ruff_does(name: str) -> tuple[bool, str]:
    return name[0].islower(), name

"""Binding a pod exactly once; what a scheduler adds to it is in tests/scheduler/test_writer.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mooring.api.core import Binding
from mooring.api.meta import ObjectMeta, ObjectReference
from mooring.client.errors import NotFound
from mooring.client.pod_binder import AlreadyBound, PodBinder
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox


@pytest.fixture
def cluster() -> Iterator[Sandbox]:
    with Sandbox(controllers=False, kubelets=False) as sandbox:
        sandbox.apply(node("a"), node("b"), pod("p", uid=""))
        yield sandbox


def bind(cluster: Sandbox, target: str, uid: str = "") -> BaseException | None:
    """What came of it."""
    meta = ObjectMeta(
        name="p", namespace="default", uid=uid or cluster.get("pod", "p")["metadata"]["uid"]
    )
    binding = Binding(metadata=meta, target=ObjectReference(kind="Node", name=target))
    work = PodBinder(cluster.cluster.client()).bind(binding)
    task = cluster.loop.create_task(work)
    cluster.advance(30)
    return task.exception()


def test_binds_a_pod(cluster: Sandbox) -> None:
    assert bind(cluster, "a") is None
    assert cluster.node_of("p") == "a"


def test_says_where_a_pod_is_that_somebody_else_has_bound(cluster: Sandbox) -> None:
    assert bind(cluster, "a") is None
    error = bind(cluster, "b")
    assert isinstance(error, AlreadyBound)
    assert (error.node, error.code) == ("a", 409)
    assert 'pod p is already assigned to node "a"' in str(error)


def test_is_content_with_a_pod_that_is_where_it_should_be(cluster: Sandbox) -> None:
    assert bind(cluster, "a") is None
    assert bind(cluster, "a") is None


def test_never_binds_a_namesake(cluster: Sandbox) -> None:
    assert isinstance(bind(cluster, "a", uid="of another pod"), NotFound)
    assert cluster.node_of("p") == ""

"""The judge judges right: sums of requests, overcommitted nodes, double binds."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from tests.controlplane.embedded import EmbeddedPlane
from tests.controlplane.invariants import (
    Bind,
    binds,
    double_binds,
    overcommitted,
    quantity,
    requests,
)
from tests.controlplane.objects import node, pod

GIB = 1 << 30


def container(cpu: str, *, sidecar: bool = False) -> dict[str, Any]:
    always = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **always}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("250m", Fraction(1, 4)),
        ("1Gi", GIB),
        ("0.5Gi", GIB // 2),
        ("2k", 2000),
        ("3E", 3 * 10**18),
        ("1e3", 1000),
        ("100u", Fraction(1, 10_000)),
        ("7", 7),
    ],
)
def test_quantity_is_read_exactly(text: str, value: Fraction) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize(
    ("spec", "cpus"),
    [
        ({"containers": [container("1"), container("500m")]}, Fraction(3, 2)),
        ({"containers": [container("1")], "initContainers": [container("3")]}, 3),
        (
            {
                "containers": [container("1")],
                "initContainers": [
                    container("3"),
                    container("1", sidecar=True),
                    container("2500m"),
                    container("1", sidecar=True),
                ],
            },
            Fraction(7, 2),
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, Fraction(5, 4)),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}, 4),
    ],
)
def test_requests_are_what_must_be_set_aside(spec: dict[str, Any], cpus: Fraction) -> None:
    assert requests({"spec": spec})["cpu"] == cpus


def test_node_is_overcommitted_by_cpu_memory_or_number_of_pods() -> None:
    full = [pod(f"p{i}", node="n", cpu="1", memory="1Gi") for i in range(2)]
    finished = {**pod("done", node="n", cpu="9"), "status": {"phase": "Succeeded"}}
    elsewhere = [pod("waiting", cpu="9"), pod("other", node="m", cpu="9")]
    living = [*full, finished, *elsewhere]
    assert overcommitted([node("n", cpu="2", memory="2Gi", pods=2)], living) == []
    assert overcommitted([node("n", cpu="1999m", memory="2Gi", pods=1)], living) == [
        "n: 2 of 1.999 cpu",
        "n: 2 of 1 pods",
    ]
    assert overcommitted([node("n", memory="2047Mi")], living) == [
        f"n: {2 * GIB:g} of {2047 << 20:g} memory"
    ]


def test_pod_is_bound_twice_only_if_both_succeeded_and_it_is_the_same_pod() -> None:
    first = Bind("ns", "p", "uid-1", "n", "me", "", "", datetime.now(UTC), 201)
    refused, successor = replace(first, code=409), replace(first, uid="uid-2")
    assert double_binds([first, refused, successor]) == []
    assert double_binds([first, successor, replace(first, node="m")]) == ["ns/p (uid-1)"]


class Written(EmbeddedPlane):
    """Never started: only its audit log is read."""

    def write(self, text: bytes) -> None:
        with (self.folder / "audit.log").open("ab") as file:
            file.write(text)


def line(name: str, second: int, namespace: str = "ns") -> bytes:
    event = {
        "verb": "create",
        "objectRef": {"namespace": namespace, "name": name, "subresource": "binding"},
        "requestObject": {"metadata": {"uid": f"uid-{name}"}, "target": {"name": "n"}},
        "user": {"username": "u"},
        "responseStatus": {"code": 201},
        "stageTimestamp": f"2026-01-01T00:00:{second:02}.000000Z",
    }
    return json.dumps(event).encode() + b"\n"


def test_the_trail_goes_on_where_it_was_read_to() -> None:
    plane = Written()
    try:
        assert binds(plane) == []
        second = line("b", 2)
        plane.write(line("c", 3) + second[:20])  # a line that is being written
        assert [bind.pod for bind in binds(plane)] == ["c"]
        plane.write(second[20:] + b'{"cut off by a kill, \xc3' + line("x", 4) + line("a", 1))
        plane.write(line("d", 5, "other"))
        assert [bind.pod for bind in binds(plane)] == ["a", "b", "c", "d"]
        assert [bind.pod for bind in binds(plane, "ns")] == ["a", "b", "c"]
    finally:
        shutil.rmtree(plane.folder)

"""The embedded server answers as a kube-apiserver does.

The scripts are lists of requests; both servers get them, and every answer must be the same but for
uids, versions, times, and who owns which field.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest
from tests.cluster.apiserver import scripts_pods
from tests.cluster.apiserver.compared_requests import (
    RealServer,
    ask_ours,
    comparable,
    delete,
    get,
    patch,
    pod,
    post,
    watch_ours,
)
from tests.cluster.apiserver.record_answers import FILES, SCRIPTS, record, recorded
from tests.controlplane.cluster import ControlPlane
from tests.sizes import sized

from mooring.cluster.apiserver.server import ApiServer

PODS = "/api/v1/namespaces/{ns}/pods"
STORY = [
    post(PODS, pod("a", labels={"app": "x"})),
    post(PODS, pod("b", labels={"app": "y"})),
    patch(f"{PODS}/a", {"metadata": {"labels": {"app": "y"}}}),
    patch(f"{PODS}/b", {"metadata": {"labels": {"app": "x"}}}),
    patch(f"{PODS}/b", {"metadata": {"labels": {"app": "x"}}}),
    patch(f"{PODS}/a/status", {"status": {"phase": "Running"}}),
    post(f"{PODS}/b/binding", scripts_pods.binding("b")),
    delete(f"{PODS}/a"),
    delete(f"{PODS}/b"),
    delete(f"{PODS}/b?gracePeriodSeconds=0"),
]
WATCHES = (
    "",
    "labelSelector=app%3Dx",
    "labelSelector=app%21%3Dx",
    "fieldSelector=spec.nodeName%3D",
    "fieldSelector=status.phase%3DPending,metadata.name%3Da",
    "fieldSelector=metadata.name%3Db&labelSelector=app",
)


@pytest.fixture
def real(real_server: ControlPlane) -> Iterator[RealServer]:
    connection = RealServer(real_server.server, real_server.token, real_server.trusted)
    yield connection
    connection.close()


def begin(real: RealServer, ours: ApiServer) -> str:
    """A namespace on both servers."""
    namespace = f"like-{secrets.token_hex(4)}"
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    for answer in (
        real.ask(post("/api/v1/namespaces", value), namespace),
        ask_ours(ours, post("/api/v1/namespaces", value), namespace),
    ):
        assert answer.status == 201, answer
    return namespace


@pytest.mark.parametrize("file", FILES)
def test_what_was_written_down_is_still_true(file: str, real: RealServer) -> None:
    """Otherwise run `python -m tests.cluster.apiserver.record_answers`."""
    noted = recorded()
    scripts = FILES[file]
    if file == "real_answers_custom":  # the real server takes a second or two for each definition
        chosen = ("definitions: defaults", "custom objects: apply", "custom objects: versions")
        scripts = {name: steps for name, steps in scripts.items() if name in chosen or sized(1) > 1}
    for name, answers in record(real, scripts).items():
        for step, answer, expected in zip(SCRIPTS[name], answers, noted[name], strict=True):
            assert answer == expected, str(step)


@pytest.mark.parametrize("name", SCRIPTS)
def test_answers_as_was_written_down(name: str) -> None:
    ours = ApiServer()
    namespace = "like-recorded"
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    ask_ours(ours, post("/api/v1/namespaces", value), namespace)
    for step, expected in zip(SCRIPTS[name], recorded()[name], strict=True):
        assert comparable(ask_ours(ours, step, namespace), namespace) == expected, str(step)


@pytest.mark.parametrize("query", WATCHES)
def test_tells_the_same_story_to_a_watch(query: str, real: RealServer) -> None:
    ours = ApiServer()
    namespace = begin(real, ours)
    theirs = real.ask(get(PODS), namespace).value["metadata"]["resourceVersion"]
    own = ask_ours(ours, get(PODS), namespace).value["metadata"]["resourceVersion"]
    for step in STORY:
        assert real.ask(step, namespace).status < 300, str(step)
        assert ask_ours(ours, step, namespace).status < 300, str(step)
    path = f"{PODS}?watch=1&timeoutSeconds=1&{query}&resourceVersion="
    expected = real.ask(get(path + theirs), namespace)
    told = watch_ours(ours, get(path + own), namespace)
    lines = expected.value if isinstance(expected.value, str) else json.dumps(expected.value)
    assert comparable(told, namespace) == comparable(
        type(told)(200, [json.loads(line) for line in lines.splitlines()]), namespace
    )

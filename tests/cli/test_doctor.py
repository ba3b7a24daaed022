"""`mooring doctor` on a cluster of its own process."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.cli.process import Running

from mooring.api import codec
from mooring.api.coordination import Lease, LeaseSpec
from mooring.api.meta import ObjectMeta, format_time
from mooring.cli import main
from mooring.cli.doctor.server import check_permissions, check_server
from mooring.client.client import ApiClient
from mooring.client.http import HttpTransport
from mooring.client.incluster import find_endpoint
from mooring.client.permissions import Permission
from mooring.client.transport import Fence, Request, Response, Stream
from mooring.testing import pod

PLUGIN = """
import time
import mooring.framework as fw

class Slow(fw.Plugin, fw.Score):
    name = "Slow"

    def score(self, state, pod, node):
        time.sleep(0.004)
        return 0

class Broken(fw.Plugin, fw.Filter):
    name = "Broken"

    def filter(self, state, pod, node):
        raise KeyError("x")
"""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a cluster with four nodes, and a pod for another scheduler."""
    file = tmp_path_factory.mktemp("cluster") / "kubeconfig"
    words = ("cluster", "up", "--nodes", "4", "--kubeconfig", str(file))
    with Running(*words, forked=True) as cluster:
        cluster.until("Ctrl-C")
        create(str(file), pod("lost", scheduler="other"), pod("mine", scheduler="mooring"))
        yield str(file)


def create(kubeconfig: str, *objects: Any) -> None:
    async def go() -> None:
        transport = HttpTransport(find_endpoint(kubeconfig), user_agent="tests")
        try:
            for value in objects:
                await ApiClient(transport).create(getattr(value, "api", value))
        finally:
            await transport.close()

    asyncio.run(go())


def doctor(
    kubeconfig: str, capsys: pytest.CaptureFixture[str], *flags: str
) -> tuple[int, list[dict[str, str]]]:
    code = main(["doctor", "--kubeconfig", kubeconfig, "-o", "json", *flags])
    answer = json.loads(capsys.readouterr().out)
    assert answer["version"] == 1
    return code, answer["findings"]


def of(found: list[dict[str, str]], check: str) -> list[dict[str, str]]:
    return [one for one in found if one["check"] == check]


def configured(folder: Path, *plugins: str) -> str:
    file = folder / "config.yaml"
    enabled = [{"name": f"doctor_plugins:{name}"} for name in plugins]
    file.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [
                    {
                        "schedulerName": "mooring",
                        "plugins": {"multiPoint": {"enabled": enabled}},
                    }
                ],
            }
        )
    )
    (folder / "doctor_plugins.py").write_text(PLUGIN)
    return str(file)


def test_a_healthy_cluster_has_no_problem(
    kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = doctor(kubeconfig, capsys, "--config", configured(tmp_path))
    assert code == 0
    assert {one["check"] for one in found} == {
        *("installation", "configuration", "server", "clock", "rights"),
        *("nodes", "names", "lease", "plugins"),
    }
    assert [one for one in found if one["level"] == "problem"] == []
    assert of(found, "nodes")[0]["text"] == "4 of 4 are ready and not cordoned"
    [lost, mine] = of(found, "names")
    assert lost["text"].startswith('1 pod waits for the scheduler "other"')
    assert lost["level"] == "warning"
    assert mine["text"] == "profiles: mooring"


def test_people_see_a_line_and_what_to_do(
    kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--kubeconfig", kubeconfig]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("✓ installation")
    assert any(line.startswith("! names") for line in lines)
    assert any(line.strip().startswith("→ start it") for line in lines)
    assert lines[-1] == "0 problems, 2 warnings."


def test_a_slow_plugin_is_named_with_what_it_costs(
    kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = doctor(kubeconfig, capsys, "--config", configured(tmp_path, "Slow"))
    assert code == 0
    declared, cost, dear = of(found, "plugins")
    assert declared["text"].startswith("Slow declares no depends_on")
    assert "most: Slow" in cost["text"]
    assert dear["text"].startswith("Slow takes ")
    assert dear["text"].endswith("ms for each pod on 4 nodes")


def test_a_plugin_that_fails_is_a_problem(
    kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = doctor(kubeconfig, capsys, "--config", configured(tmp_path, "Broken"))
    assert code == 1
    assert any("KeyError" in one["text"] for one in of(found, "plugins"))


def test_a_broken_configuration_is_told_and_the_cluster_left_alone(
    kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(configured(tmp_path))
    file.write_text(file.read_text().replace('"mooring"', '""').replace("multiPoint", "multi"))
    code, found = doctor(kubeconfig, capsys, "--config", str(file))
    assert code == 1
    assert of(found, "configuration")
    assert of(found, "server") == []


def test_kube_scheduler_and_a_profile_of_its_name_conflict(
    kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def lease(name: str, renewed: float) -> Lease:
        spec = LeaseSpec(
            holder_identity="someone",
            lease_duration_seconds=60,
            renew_time=format_time(renewed, micros=True),
        )
        return Lease(metadata=ObjectMeta(name=name, namespace="kube-system"), spec=spec)

    now = time.time()
    create(kubeconfig, lease("kube-scheduler", now), lease("default-scheduler", now - 3600))
    create(kubeconfig, lease("other", now))
    code, found = doctor(kubeconfig, capsys)
    assert code == 1
    conflict = of(found, "names")[0]
    assert conflict["level"] == "problem"
    assert "served by kube-scheduler" in conflict["text"]
    assert not any('"other"' in one["text"] for one in of(found, "names"))  # its lease is held
    assert of(found, "lease")[0]["text"].endswith("has lapsed: no replica leads")


@pytest.mark.parametrize("file", ["missing", "unreachable"])
def test_a_server_that_cannot_be_reached_is_one_line(
    file: str, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    if file == "unreachable":
        text = Path(kubeconfig).read_text()
        port = text.partition("https://127.0.0.1:")[2].split()[0].strip("\"',")
        path.write_text(text.replace(f"127.0.0.1:{port}", "127.0.0.1:1"))
    code, found = doctor(str(path), capsys)
    assert code == 1
    [server] = of(found, "server")
    assert server["level"] == "problem"
    assert server["advice"]
    assert server["text"].count("127.0.0.1:1") == (1 if file == "unreachable" else 0)


class Changed:
    """A transport whose answers are changed on the way."""

    def __init__(self, transport: HttpTransport, **fields: Any) -> None:
        self._transport = transport
        self._fields = fields

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        return structs.replace(await self._transport.send(request, fence), **self._fields)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(request)

    async def close(self) -> None:
        await self._transport.close()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"headers": {"date": "Mon, 01 Jan 2024 00:00:00 GMT"}}, "ahead of the server's"),
        ({"headers": {"date": "Mon, 01 Jan 2080 00:00:00 GMT"}}, "behind the server's"),
        ({"body": b'{"major": "1", "minor": "25+", "gitVersion": "v1.25.3"}'}, "is older than"),
        ({"body": b'{"major": "1", "minor": "99", "gitVersion": "v1.99.0"}'}, "is newer than"),
        ({"body": b"<html>"}, "/version is not Kubernetes'"),
        ({"status": 503, "body": b"[-]etcd failed"}, "not ready: [-]etcd failed"),
    ],
)
def test_a_wrong_clock_another_version_and_a_sick_server_are_told(
    kubeconfig: str, fields: dict[str, Any], text: str
) -> None:
    async def go() -> list[str]:
        transport = HttpTransport(find_endpoint(kubeconfig), user_agent="tests")
        try:
            found = await check_server(Changed(transport, **fields), "address")
        finally:
            await transport.close()
        return [one.text for one in found if one.level != "ok"]

    assert any(text in one for one in asyncio.run(go()))


@pytest.mark.parametrize("headers", [{}, {"date": "soon"}])
def test_a_clock_that_the_server_does_not_tell_is_not_compared(
    kubeconfig: str, headers: dict[str, str]
) -> None:
    async def go() -> set[str]:
        transport = HttpTransport(find_endpoint(kubeconfig), user_agent="tests")
        try:
            found = await check_server(Changed(transport, headers=headers), "address")
        finally:
            await transport.close()
        return {one.check for one in found}

    assert asyncio.run(go()) == {"server"}


def test_missing_rights_are_named(kubeconfig: str) -> None:
    denied = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {},
        "status": {"allowed": False},
    }
    needed = [Permission("list", "nodes"), *(Permission("get", f"kind{n}") for n in range(7))]

    async def go() -> list[Any]:
        transport = HttpTransport(find_endpoint(kubeconfig), user_agent="tests")
        changed = Changed(transport, body=codec.encode(denied))
        try:
            return await check_permissions(ApiClient(changed), needed)
        finally:
            await transport.close()

    [found] = asyncio.run(go())
    assert found.level == "problem"
    assert found.text.startswith("missing: list nodes; get kind0;")
    assert found.text.endswith("and 3 more")

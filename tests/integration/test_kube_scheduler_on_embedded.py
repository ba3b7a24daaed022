"""The real kube-scheduler on `mooring cluster up`: a foreign client that has to believe in it."""

from __future__ import annotations

import base64
import json
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.cli.process import Running
from tests.controlplane.admin import AdminApi, Object
from tests.controlplane.build import binaries
from tests.controlplane.commands import scheduler_configuration
from tests.controlplane.objects import pod
from tests.controlplane.processes import Process
from tests.controlplane.waiting import wait_until

NODES = 20
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
JSON: Final = {"contentType": "application/json", "acceptContentTypes": "application/json"}
WATCHED: Final = (
    *("Pod", "Node", "Namespace", "Service", "ReplicationController", "ReplicaSet", "StatefulSet"),
    *("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "CSIDriver"),
    *("CSIStorageCapacity", "VolumeAttachment", "PodDisruptionBudget"),
    *("ResourceClaim", "ResourceSlice", "DeviceClass"),
)
# It says so on every start, on a real cluster as well.
HARMLESS: Final = "The manifest file is empty, ignoring."


@pytest.mark.parametrize("connection", [JSON, {}], ids=["json", "protobuf"])
@pytest.mark.usefixtures("real_programs")
def test_kube_scheduler_binds_200_pods(tmp_path: Path, connection: Object) -> None:
    with ExitStack() as stack:
        api = stack.enter_context(embedded_cluster(tmp_path))
        scheduler = start_kube_scheduler(tmp_path, connection)
        stack.callback(scheduler.stop)
        for value in (
            deployment("plain", 80),
            deployment("spread", 60, topologySpreadConstraints=[evenly("spread")]),
            deployment("apart", NODES, affinity=together_or_not("podAntiAffinity", "apart", HOST)),
            deployment("close", 40, affinity=together_or_not("podAffinity", "close", ZONE)),
        ):
            api.create(value, "default")
        api.create(pod("huge", cpu="64"))
        wait_until(lambda: running(api) == 200, 120, what="200 pods run")

        zone_of = {
            each["metadata"]["name"]: each["metadata"]["labels"][ZONE] for each in api.list("Node")
        }
        assert len(set(nodes_of(api, "apart"))) == NODES
        assert len({zone_of[node] for node in nodes_of(api, "close")}) == 1
        zones = Counter(zone_of[node] for node in nodes_of(api, "spread"))
        assert max(zones.values()) - min(zones.values()) <= 1
        check_that_it_says_why_huge_waits(api)
        check_log(scheduler.log.read_text())


def check_that_it_says_why_huge_waits(api: AdminApi) -> None:
    why = f"0/{NODES} nodes are available: {NODES} Insufficient cpu."

    def is_told() -> bool:
        told = api.list("events.k8s.io/v1/Event", "default")
        about = [event for event in told if event["regarding"]["name"] == "huge"]
        return any(event["note"].startswith(why) for event in about)

    wait_until(is_told, what="an Event says why huge waits")
    known = api.get("Pod", "huge", "default")["status"]["conditions"]
    (condition,) = [each for each in known if each["type"] == "PodScheduled"]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"].startswith(why)


def check_log(log: str) -> None:
    """It found all that it asked for, and had nothing to complain of."""
    lines = log.splitlines()
    complaints = [line for line in lines if line.startswith(("E", "W")) and HARMLESS not in line]
    assert complaints == []
    for words in ("Failed to watch", "unable to", "could not find the requested resource"):
        assert words not in log
    for kind in WATCHED:
        assert f'"Caches populated" type="*v1.{kind}"' in log, kind


# --- programs -----------------------------------------------------------------------------------


@contextmanager
def embedded_cluster(folder: Path) -> Iterator[AdminApi]:
    """`mooring cluster up` as a process, and a client of it."""
    kubeconfig = folder / "kubeconfig"
    words = ("cluster", "up", "--nodes", str(NODES), "--kubeconfig", str(kubeconfig))
    with Running(*words, forked=True) as cluster:
        cluster.until("Ctrl-C ends it")
        api = admin(kubeconfig)
        try:
            yield api
        finally:
            api.close()
        assert cluster.stop() == 0
        assert "Traceback" not in cluster.all()


def start_kube_scheduler(folder: Path, connection: Object) -> Process:
    own = {"clientConnection": connection, "leaderElection": {"leaderElect": True}}
    config = folder / "config.json"
    config.write_text(json.dumps(scheduler_configuration(folder / "kubeconfig", own)))
    command = [str(binaries() / "kube-scheduler"), f"--config={config}", "--secure-port=0", "-v=2"]
    return Process("kube-scheduler", command, folder / "kube-scheduler.log").start()


def admin(kubeconfig: Path) -> AdminApi:
    """A client with the credentials of a kubeconfig."""
    document = yaml.safe_load(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    headers = {"Authorization": f"Bearer {user['token']}"}
    return AdminApi(
        cluster["server"], lambda: ssl.create_default_context(cadata=authority), headers
    )


# --- objects ------------------------------------------------------------------------------------


def deployment(name: str, replicas: int, **spec: Any) -> Object:
    labels = {"app": name}
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], **spec},
            },
        },
    }


def evenly(app: str) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def together_or_not(kind: str, app: str, topology: str) -> Object:
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def running(api: AdminApi) -> int:
    return len(api.list("Pod", "default", fieldSelector="status.phase=Running"))


def nodes_of(api: AdminApi, app: str) -> list[str]:
    found = api.list("Pod", "default", labelSelector=f"app={app}")
    return [each["spec"]["nodeName"] for each in found]

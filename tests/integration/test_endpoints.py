"""The endpoints of `mooring run` beside those of the real kube-scheduler, for all kinds of callers.

How health looks while the API server is away belongs to the chaos tests.
"""

from __future__ import annotations

import json
import ssl
import urllib.request

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import on_both
from tests.controlplane.objects import nodes, pod, pods
from tests.controlplane.plane import Plane
from tests.controlplane.processes import free_port
from tests.controlplane.users import User
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import wait_for_event, wait_until_bound
from tests.integration.mooring_process import NAME, start_mooring
from tests.observe.parse_exposition import Seen, read

MAY_READ_METRICS = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


# --- who may read -------------------------------------------------------------------------------


def test_metrics_are_for_callers_who_may_get_them(control_plane: ControlPlane) -> None:
    mooring = start_mooring(control_plane)
    stranger = control_plane.add_service_account("stranger")
    reader = control_plane.add_service_account("reader")
    control_plane.grant(reader, MAY_READ_METRICS)

    assert mooring.get("/metrics").code == 401
    assert mooring.get("/metrics", "no-such-token").code == 401
    refused = mooring.get("/metrics", token_of(stranger))
    assert refused.code == 403
    text = 'User "system:serviceaccount:default:stranger" cannot get path "/metrics"'
    assert text in json.loads(refused.text)["message"]
    assert mooring.get("/metrics", token_of(reader)).code == 200
    assert mooring.get("/configz", token_of(reader)).code == 403  # only what was granted
    assert mooring.get("/healthz").text == "ok"


def test_client_certificates_are_known_as_the_cluster_knows_them(
    control_plane: ControlPlane,
) -> None:
    mooring = start_mooring(control_plane)
    stranger, reader = control_plane.add_user("stranger"), control_plane.add_user("reader")
    control_plane.grant(reader, MAY_READ_METRICS)
    # Whom to trust is looked up in the cluster, after the endpoints have begun to serve.
    wait_until(
        lambda: mooring.get("/metrics", user=reader).code == 200, what="certificates are trusted"
    )
    assert mooring.get("/metrics", user=stranger).code == 403
    assert mooring.get("/metrics", user=control_plane.admin_user).code == 200


def test_rights_that_are_granted_later_count_soon(control_plane: ControlPlane) -> None:
    flags = ("--authorization-webhook-cache-unauthorized-ttl=100ms",)
    mooring = start_mooring(control_plane, flags=flags)
    reader = control_plane.add_service_account("reader")
    assert mooring.get("/metrics", token_of(reader)).code == 403
    control_plane.grant(reader, MAY_READ_METRICS)
    wait_until(
        lambda: mooring.get("/metrics", token_of(reader)).code == 200, what="it may read now"
    )


# --- what they read -----------------------------------------------------------------------------


@on_both
def test_stable_metrics_are_those_of_kube_scheduler(control_plane: Plane, namespace: str) -> None:
    control_plane.admin.create_many(nodes(3))
    mooring = start_mooring(control_plane)
    port = start_kube_scheduler(control_plane)
    for scheduler in (NAME, "default-scheduler"):
        control_plane.admin.create_many(
            pods(5, prefix=scheduler, namespace=namespace, scheduler=scheduler)
        )
        control_plane.admin.create(
            pod(f"huge-{scheduler}", namespace=namespace, scheduler=scheduler, cpu="64")
        )
        wait_for_event(control_plane, namespace, f"huge-{scheduler}", "FailedScheduling")
        small = [f"{scheduler}-{number:06d}" for number in range(5)]
        wait_until_bound(control_plane, namespace, *small)

    theirs = wait_until(
        lambda: scraped(port, control_plane.token, "scheduler_queue_incoming_pods_total"),
        what="kube-scheduler has counted something",
    )
    ours = mooring.metrics(control_plane.token)
    stable = {name: seen for name, seen in theirs.items() if seen.stability == "STABLE"}
    assert len(stable) >= 8
    for name, seen in stable.items():
        found = ours[name]
        assert found.stability == "STABLE", name
        assert (found.type, found.labels, found.buckets) == (seen.type, seen.labels, seen.buckets)
    assert scheduled(ours, NAME) == scheduled(theirs, "default-scheduler") == 5
    # And under their names whatever else both have.
    for name in theirs.keys() & ours.keys():
        assert ours[name].type == theirs[name].type, name


@on_both
def test_configz_shows_the_configuration_in_effect(control_plane: Plane) -> None:
    port = start_kube_scheduler(control_plane)
    mooring = start_mooring(control_plane, config={"podMaxBackoffSeconds": 20})
    shown = json.loads(mooring.get("/configz", control_plane.token).text)
    config = shown["componentconfig"]
    assert (config["kind"], config["podMaxBackoffSeconds"]) == ("KubeSchedulerConfiguration", 20)
    assert config["profiles"][0]["schedulerName"] == NAME
    theirs = json.loads(answer_of(port, "/configz", control_plane.token))["componentconfig"]
    # Without it, all nodes are evaluated: docs/parity.md.
    assert set(theirs) - set(config) == {"percentageOfNodesToScore"}
    assert set(config["profiles"][0]) == set(theirs["profiles"][0])


# --- callers and the other one ------------------------------------------------------------------


def token_of(user: User) -> str:
    assert user.token_file is not None
    return user.token_file.read_text()


def start_kube_scheduler(control_plane: Plane) -> int:
    """The port on which the real one serves, once it does."""
    port = free_port()
    user = control_plane.add_user("system:kube-scheduler")
    kubeconfig = control_plane.kubeconfig_for(user)
    flags = {
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "cert-dir": control_plane.folder,
    }
    arguments = [f"--{flag}={value}" for flag, value in flags.items()]
    control_plane.kube_scheduler(user=user, arguments=arguments)
    wait_until(lambda: answer_of(port, "/readyz") == "ok", what="kube-scheduler is ready")
    return port


def answer_of(port: int, path: str, token: str = "") -> str:
    """What an endpoint of kube-scheduler says; empty if it does not."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:  # HTTPError, too
        return ""


def scraped(port: int, token: str, until: str) -> dict[str, Seen]:
    """The metrics of kube-scheduler; nothing while the one to wait for is not among them."""
    found = read(answer_of(port, "/metrics", token))
    return found if until in found else {}


def scheduled(metrics: dict[str, Seen], profile: str) -> float:
    samples = metrics["scheduler_schedule_attempts_total"].samples
    wanted = {"profile": profile, "result": "scheduled"}
    return sum(sample.value for sample in samples if sample.labels == wanted)

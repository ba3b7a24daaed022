"""Tokens and certificates are replaced under load: at most one request fails, nothing restarts."""

from __future__ import annotations

import ssl
from typing import Any

from tests.certificates import Authority, Pair, replace
from tests.controlplane.admin import AdminApi, ApiFailure, Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import audit
from tests.controlplane.objects import nodes
from tests.controlplane.users import User
from tests.controlplane.waiting import wait_until
from tests.integration.background_pods import Load
from tests.integration.cluster_reads import wait_until_bound
from tests.integration.mooring_process import Mooring, grant_shipped, scheduler_user, start_mooring


def test_token_is_rotated_and_the_old_one_revoked(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(roomy_nodes())
    user = control_plane.add_service_account("rotated", namespace)
    grant_shipped(control_plane, user)
    put_token(control_plane, user, "first")
    mooring = start_mooring(control_plane, user=user)
    failed = failures(mooring, control_plane)
    with Load(control_plane, namespace) as load:
        load.wait_for(20)
        for name in ("second", "third"):
            old = control_plane.api_for(user)
            put_token(control_plane, user, name)
            load.wait_for(20)
        for former in ("first", "second"):
            control_plane.admin.delete("Secret", former, namespace)
        # The server remembers a token that it has seen for ten seconds.
        wait_until(lambda: is_refused(old), what="the old token is worthless")
        load.wait_for(20)
    wait_until_bound(control_plane, namespace)
    assert failures(mooring, control_plane) - failed <= 2
    assert audit(control_plane, namespace).broken == ()
    assert '"FailedScheduling"' not in mooring.log


def test_serving_certificate_of_the_api_server_is_rotated(
    durable_control_plane: ControlPlane,
) -> None:
    cluster = durable_control_plane
    cluster.admin.create_many(roomy_nodes())
    mooring = start_mooring(cluster)
    failed = failures(mooring, cluster)
    with Load(cluster, "default") as load:
        load.wait_for(20)
        cluster.rotate_serving_certificate()
        load.wait_for(20)
        cluster.rotate_serving_certificate(new_authority=True)
        wait_until_reloaded(mooring, 1)
        load.wait_for(20)
        # Who was trusted before is no longer: only the new certificate will do from now on.
        authorities = cluster.trusted.read_bytes().split(b"-----BEGIN")
        replace(cluster.trusted, b"-----BEGIN" + authorities[-1])
        wait_until_reloaded(mooring, 2)
        load.wait_for(20)
    wait_until_bound(cluster, "default")
    assert failures(mooring, cluster) - failed <= 2
    assert audit(cluster).broken == ()
    assert mooring.is_ready


def test_client_certificate_is_rotated(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create_many(roomy_nodes())
    mooring = start_mooring(control_plane, user=scheduler_user(control_plane, "rotated"))
    failed = failures(mooring, control_plane)
    with Load(control_plane, namespace) as load:
        for times in (1, 2):
            load.wait_for(20)
            control_plane.add_user("rotated")  # writes the same files anew
            wait_until_reloaded(mooring, times)
        load.wait_for(20)
    wait_until_bound(control_plane, namespace)
    assert failures(mooring, control_plane) - failed <= 2


def test_own_serving_certificate_is_rotated(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create_many(roomy_nodes())
    authority = Authority("endpoints")
    pair = authority.server("127.0.0.1")
    certificate, key = pair.write(control_plane.folder, "endpoints")
    flags = ("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key))
    mooring = start_mooring(control_plane, flags=flags)
    assert served_serial(mooring) == pair.serial
    with Load(control_plane, namespace) as load:
        for _ in range(2):
            load.wait_for(10)
            pair = authority.server("127.0.0.1")
            pair.write(control_plane.folder, "endpoints")
            # Every look is a connection, and none of them fails.
            wait_until_served(mooring, pair.serial)
            assert mooring.get("/metrics", control_plane.token).code == 200
    wait_until_bound(control_plane, namespace)


# --- tokens that can be revoked one by one ------------------------------------------------------


def put_token(control_plane: ControlPlane, user: User, secret: str) -> None:
    """A new token in the user's file, which is good for as long as a Secret exists."""
    namespace, name = user.name.split(":")[2:]
    made = control_plane.admin.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret, "namespace": namespace},
        }
    )
    path = control_plane.admin.path("ServiceAccount", name, namespace, "token")
    kept = {"apiVersion": "v1", "kind": "Secret", "name": secret, "uid": made["metadata"]["uid"]}
    asked: dict[str, Any] = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600, "boundObjectRef": kept},
    }
    answer = control_plane.admin.request("POST", path, asked)
    assert user.token_file is not None
    replace(user.token_file, answer["status"]["token"].encode())


def is_refused(api: AdminApi) -> bool:
    try:
        api.text("GET", "/api")
    except ApiFailure as error:
        return error.code == 401
    return False


def roomy_nodes() -> list[Object]:
    return nodes(3, cpu="64", pods=1000)


# --- looking ------------------------------------------------------------------------------------


def failures(mooring: Mooring, control_plane: ControlPlane) -> float:
    """Requests that were not answered, or answered with a refusal of who we are."""
    requests = mooring.metrics(control_plane.token)["rest_client_requests_total"]
    bad = ("<error>", "401", "403")
    return sum(sample.value for sample in requests.samples if sample.labels["code"] in bad)


def wait_until_reloaded(mooring: Mooring, times: int) -> None:
    wait_until(
        lambda: mooring.log.count('"certificates reloaded"') >= times,
        what=f"certificates are reloaded for the {times}. time",
    )


def wait_until_served(mooring: Mooring, serial: int) -> None:
    wait_until(lambda: served_serial(mooring) == serial, what="the new certificate is served")


def served_serial(mooring: Mooring) -> int:
    pem = ssl.get_server_certificate(("127.0.0.1", mooring.port), timeout=10.0)
    return Pair(pem.encode(), b"").serial

"""The endpoints over real sockets on loopback."""

import ssl
from pathlib import Path

import pytest
from tests.certificates import Authority, trusting
from tests.ui.in_process_server import FakeReviewer, serve

from mooring.client.errors import Unreachable
from mooring.errors import ConfigError
from mooring.observe.metrics import Metrics
from mooring.ui.access import Access
from mooring.ui.endpoints import Endpoints
from mooring.ui.health import Health
from mooring.ui.pages import HttpPage, config_page, metrics_page, version_page
from mooring.ui.serving_tls import ServingTls


@pytest.mark.parametrize(
    ("method", "path", "token", "status"),
    [
        ("GET", "/healthz", "", 200),
        ("GET", "/livez/ping", "", 200),
        ("GET", "/livez/pong", "", 404),
        ("HEAD", "/readyz", "", 200),
        ("POST", "/healthz", "", 405),
        ("GET", "/metrics", "", 401),
        ("GET", "/metrics", "wrong", 401),
        ("GET", "/metrics", "guest", 403),
        ("GET", "/metrics", "scraper", 200),
        ("HEAD", "/metrics", "scraper", 403),
        ("GET", "/metrics/", "admin", 404),
        ("GET", "/metrics?x=1", "scraper", 200),
        ("GET", "/%6Detrics", "scraper", 200),
        ("GET", "/healthz/../metrics", "", 404),
        ("GET", "/healthz/%2e%2e/metrics", "", 404),
        ("GET", "//metrics", "", 401),
        ("DELETE", "/metrics", "admin", 405),
        ("GET", "/nothing", "", 401),
        ("GET", "/nothing", "admin", 404),
        ("GET", "/", "admin", 404),
    ],
)
async def test_answers(method: str, path: str, token: str, status: int) -> None:
    async with serve() as client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        reply = await client.request(method, path, headers)
        assert reply.status == status
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Cache-Control"] == "no-cache, private"


async def test_refuses_in_the_words_of_kubernetes() -> None:
    async with serve() as client:
        unknown = await client.get("/metrics")
        assert unknown.headers["Content-Type"] == "application/json"
        assert unknown.json == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }
        known = await client.get("/metrics", "guest")
        assert known.json["message"] == 'forbidden: User "guest" cannot get path "/metrics"'
        assert known.json["details"] == {}
        nowhere = await client.get("/nothing", "admin")
        assert nowhere.text == "404 page not found\n"
        assert nowhere.headers["Content-Type"] == "text/plain; charset=utf-8"
        wrong = await client.request("PUT", "/healthz")
        assert wrong.json["reason"] == "MethodNotAllowed"
        assert wrong.headers["Allow"] == "GET, HEAD"


async def test_tells_that_the_api_server_is_away() -> None:
    reviewer = FakeReviewer()
    reviewer.outage = Unreachable("no route", sent=False)
    async with serve(access=Access(reviewer)) as client:
        reply = await client.get("/metrics", "scraper")
        assert reply.status == 500
        assert reply.json["reason"] == "InternalError"
        assert (await client.get("/healthz")).text == "ok"


async def test_shows_health_with_its_reasons() -> None:
    health = Health()
    health.add("informer-sync", lambda: "2 kinds are missing: pods, nodes", on=["readyz"])
    async with serve(health=health) as client:
        assert (await client.get("/healthz")).text == "ok"
        assert (await client.get("/healthz?verbose")).text == "[+]ping ok\nhealthz check passed\n"
        failed = await client.get("/readyz")
        assert failed.status == 500
        assert failed.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert failed.text == (
            "[-]informer-sync failed: 2 kinds are missing: pods, nodes\nreadyz check failed\n"
        )
        assert (await client.get("/readyz?exclude=informer-sync")).status == 200
        assert (await client.get("/readyz/informer-sync")).status == 500


async def test_serves_metrics_configuration_and_version() -> None:
    metrics = Metrics()
    metrics.preemption_attempts.labels().add(3)
    pages = {
        "/metrics": metrics_page(metrics, "9.9"),
        "/configz": config_page(lambda: {"kind": "KubeSchedulerConfiguration"}),
        "/version": version_page("9.9"),
    }
    async with serve(pages=pages) as client:
        seen = await client.get("/metrics", "admin")
        assert seen.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "\nscheduler_preemption_attempts_total 3\n" in seen.text
        assert 'mooring_build_info{python="' in seen.text
        metrics.preemption_attempts.labels().add()
        again = await client.get("/metrics", "admin")
        assert "\nscheduler_preemption_attempts_total 4\n" in again.text
        config = await client.get("/configz", "admin")
        assert config.json == {"componentconfig": {"kind": "KubeSchedulerConfiguration"}}
        assert (await client.get("/version", "admin")).json["gitVersion"] == "v9.9"


async def test_survives_a_page_that_breaks(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> HttpPage:
        raise RuntimeError("with a secret")

    async with serve(pages={"/metrics": broken}) as client:
        reply = await client.get("/metrics", "admin")
        assert reply.status == 500
        assert "secret" not in reply.text
        assert (await client.get("/healthz")).status == 200
    assert [line.message for line in caplog.records] == ["a request handler failed"]


async def test_serves_over_tls_and_renews_its_certificate_live(tmp_path: Path) -> None:
    first, second = Authority("first"), Authority("second")
    cert_file, key_file = map(str, first.server().write(tmp_path))
    tls = ServingTls(cert_file=cert_file, key_file=key_file)
    async with serve(tls=tls, context=trusting(first)) as client:
        assert (await client.get("/healthz")).text == "ok"
        second.server().write(tmp_path)
        with pytest.raises(ssl.SSLCertVerificationError):
            await client.get("/healthz")
        client.context = trusting(second)
        assert (await client.get("/metrics", "scraper")).status == 200


async def test_knows_clients_by_their_certificates(tmp_path: Path) -> None:
    servers, clients, strangers = Authority("s"), Authority("c"), Authority("x")
    ca_file = tmp_path / "clients.crt"
    ca_file.write_bytes(clients.pem)
    cert_file, key_file = map(str, servers.server().write(tmp_path))
    tls = ServingTls(cert_file=cert_file, key_file=key_file, client_ca_file=str(ca_file))
    async with serve(tls=tls, context=trusting(servers)) as client:
        for pair, path, status in [
            (clients.client("certified"), "/metrics", 200),
            (clients.client("certified"), "/configz", 403),
            (clients.client("other", ["dev"]), "/metrics", 403),
            (clients.client("root", ["dev", "system:masters"]), "/configz", 404),
            (clients.client("", ["system:masters"]), "/metrics", 401),
            (None, "/metrics", 401),
            (None, "/healthz", 200),
        ]:
            client.context = trusting(servers, pair)
            assert (await client.get(path)).status == status, (path, status)
        client.context = trusting(servers)
        assert (await client.get("/metrics", "scraper")).status == 200
        client.context = trusting(servers, strangers.client("root", ["system:masters"]))
        with pytest.raises(OSError, match=r"(?i)unknown ca|reset|closed"):
            await client.get("/metrics")
        client.context = trusting(servers, clients.server())
        with pytest.raises(OSError, match=r"(?i)certificate|reset|closed"):
            await client.get("/metrics")


def endpoints_at(address: str, port: int = 0) -> Endpoints:
    access = Access(FakeReviewer())
    return Endpoints(address=address, port=port, tls=None, health=Health(), pages={}, access=access)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.1.2.3"])
def test_serves_nobody_outside_without_tls(address: str) -> None:
    with pytest.raises(ConfigError, match=r"--bind-address: .*without TLS only loopback"):
        endpoints_at(address)


def test_wants_an_address() -> None:
    with pytest.raises(ConfigError, match="--bind-address: 'localhost' does not appear to be"):
        endpoints_at("localhost")


async def test_says_that_a_port_is_taken() -> None:
    async with serve() as client:
        second = endpoints_at("127.0.0.1", client.port)
        with pytest.raises(ConfigError, match=f"--secure-port: can't listen .*{client.port}"):
            await second.start()
        await second.close()

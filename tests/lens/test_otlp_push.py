"""Traces reach a collector over HTTP, and what goes wrong on the way is no matter of scheduling."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from tests.controlplane.waiting import wait_until
from tests.lens.test_record import fill

from mooring.errors import ConfigError
from mooring.framework.status import OK, Status
from mooring.lens import background, otlp_push
from mooring.lens.otlp_push import OtlpPush
from mooring.lens.record import DecisionRecord


class Collector(HTTPServer):
    """Keeps the spans that it is sent; answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []  # path, header
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def pods(self) -> list[str]:
        """Of the attempts, which are the spans without a parent."""
        return [
            attribute["value"]["stringValue"]
            for span in self.spans
            if "parentSpanId" not in span
            for attribute in span["attributes"]
            if attribute["key"] == "k8s.pod.name"
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers.get("api-key", "")))
        if self.server.status == 200:
            self.server.spans += body["resourceSpans"][0]["scopeSpans"][0]["spans"]
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Not on stderr."""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setattr(background, "PERIOD", 0.01)
    with Collector() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_share_the_slow_and_the_failed_are_sent(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%3Db,other=x")
    record = DecisionRecord(lambda: 2e9)
    push = OtlpPush(collector.url, share=0.25, run=7)
    push.start()
    record.add_sink(push)
    entries = fill(record, 30)
    entries[4].took = 0.2  # slow
    for entry in entries:
        if entry.outcome == "scheduled":
            refused = entry.seq == 13
            if entry.seq == 8:
                record.permitted(entry, entry.took + 0.25)
            record.ended(entry, Status.error("no room") if refused else OK, entry.took + 0.5)
    push.close()
    assert push.lost == 0
    sent = [entries[seq - 1].pod for seq in (4, 5, 8, 12, 13, 16, 20, 24, 28)]
    assert sorted(collector.pods) == sorted(sent)
    assert set(collector.asked) == {("/v1/traces", "a=b")}
    names = [span["name"] for span in collector.spans]
    assert names[:3] == ["attempt", "queue wait", "decision"]
    assert names.count("bind") == len(sent) - 1  # no node was found for one
    first, *_ = spans = [span for span in collector.spans if span["name"] == "permit"]
    assert len(spans) == 1
    waited = int(first["endTimeUnixNano"]) - int(first["startTimeUnixNano"])
    assert waited == pytest.approx(250_000_000, abs=1_000)
    failed = [span for span in collector.spans if span.get("status", {}).get("code") == 2]
    assert [span["status"]["message"] for span in failed] == ["no room"]


def test_a_collector_that_is_away_costs_traces_and_one_warning(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    record = DecisionRecord(lambda: 2e9)
    push = OtlpPush(f"{collector.url}/base/v1/traces/", share=1.0, run=1)
    push.start()
    record.add_sink(push)
    collector.status = 503
    with caplog.at_level(logging.WARNING):
        for entry in fill(record, 1):
            record.ended(entry, OK, 1.0)
        wait_until(lambda: push.lost == 1, what="the first is lost")
        for entry in fill(record, 1):
            record.ended(entry, OK, 1.0)
        wait_until(lambda: push.lost == 2, what="the second is lost")
    assert len([one for one in caplog.records if "traces can't be sent" in one.message]) == 1
    collector.status = 200
    for entry in fill(record, 1):
        record.ended(entry, OK, 1.0)
    push.close()
    assert (len(collector.pods), push.lost) == (1, 2)
    assert {path for path, _ in collector.asked} == {"/base/v1/traces"}


def test_more_than_can_be_sent_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_push, "MOST_WAITING", 3)
    record = DecisionRecord(lambda: 2e9)
    push = OtlpPush("http://127.0.0.1:1", share=1.0, run=1)  # not started
    record.add_sink(push)
    for entry in fill(record, 5):
        record.ended(entry, OK, 1.0)
    assert push.lost == 2


@pytest.mark.parametrize("url", ["", "collector:4318", "file:///etc/passwd", "http://a:b@host"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"--record-otlp: expected the address of a collector"):
        OtlpPush(url, share=0.0, run=1)


def test_headers_that_cannot_be_read_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "secret")
    with pytest.raises(ConfigError, match="expected key=value,key=value") as failed:
        OtlpPush("http://127.0.0.1:4318", share=0.0, run=1)
    assert "secret" not in str(failed.value)

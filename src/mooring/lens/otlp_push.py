"""`--record-otlp`: attempts as OTLP traces, sent to a collector in the background.

A share of the attempts, all that were slow and all that failed by an error. A collector that does
not answer costs traces, never a decision.
"""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec

from mooring.errors import ConfigError, Problem
from mooring.lens.background import BackgroundWriter
from mooring.lens.record_entry import RecordEntry, micros
from mooring.lens.record_export import Row, otlp_traces

SLOW: Final = 0.1  # seconds of a decision
MOST_WAITING: Final = 10_000  # attempts; more are lost
_TIMEOUT: Final = 10.0  # seconds
_PATH: Final = "/v1/traces"
_HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"  # as of OpenTelemetry: key=value,key=value


class OtlpPush(BackgroundWriter[RecordEntry]):
    """Fulfils `lens.record.RecordSink`; a request that fails does not end it.

    `share`, 0 to 1, of all attempts is sent; `run` tells apart what several processes send.
    """

    FAULT: ClassVar[str] = "traces can't be sent; scheduling goes on"

    def __init__(self, url: str, *, share: float, run: int) -> None:
        self._url = _traces_url(url)
        super().__init__(self._url, most=MOST_WAITING, patience=_TIMEOUT)
        self._headers = {"Content-Type": "application/json", **_given_headers()}
        self._every = round(1 / share) if share else 0
        self._run = run
        self._is_failing = False

    # --- on the loop of the scheduler ----------------------------------------------------------

    def decided(self, entry: RecordEntry) -> None:
        if entry.outcome != "scheduled" and self._is_wanted(entry):
            self._put(entry)

    def ended(self, entry: RecordEntry) -> None:
        if entry.bind != "ok" or self._is_wanted(entry):
            self._put(entry)

    def _is_wanted(self, entry: RecordEntry) -> bool:
        return (
            (self._every and not entry.seq % self._every)
            or entry.took >= SLOW
            or entry.outcome == "error"
        )

    def _write(self, items: Sequence[RecordEntry]) -> None:
        body = msgspec.json.encode(otlp_traces(_row(entry, self._run) for entry in items))
        request = urllib.request.Request(self._url, body, self._headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                answer.read()
        except (OSError, ValueError) as error:  # urllib.error.URLError is an OSError
            self._lose(items)
            if not self._is_failing:  # once, until it works again
                self._warn(str(error))
            self._is_failing = True
        else:
            self._is_failing = False


def _traces_url(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        text = f"expected the address of a collector, http[s]://HOST[:PORT], found {url!r}"
        raise ConfigError([Problem("--record-otlp", text)])
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(_PATH) else path + _PATH).geturl()


def _given_headers() -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, os.environ.get(_HEADERS, "").split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ConfigError([Problem(_HEADERS, "expected key=value,key=value")])
        found[key.strip()] = urllib.parse.unquote(value.strip())
    return found


def _row(entry: RecordEntry, run: int) -> Row:
    """What `lens.record_export` makes spans of."""
    return {
        "run": run,
        "seq": entry.seq,
        "uid": entry.uid,
        "at": entry.at,
        "took_us": micros(entry.took),
        "queued_at": entry.queued_at,
        "namespace": entry.namespace,
        "pod": entry.pod,
        "node": entry.node,
        "outcome": entry.outcome,
        "way": entry.way,
        "attempt": entry.attempt,
        "feasible": entry.feasible,
        "message": "" if entry.why is None else entry.why.message,
        "bind": entry.bind,
        "bind_us": None if entry.bind_took is None else micros(entry.bind_took),
        "permit_us": None if entry.permit_took is None else micros(entry.permit_took),
    }

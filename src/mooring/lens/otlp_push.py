"""`--record-otlp`: attempts as OTLP traces, sent to a collector in the background.

A share of the attempts, all that were slow and all that failed by an error. The loop of the
scheduler only appends to a queue; a thread encodes and sends. A collector that does not answer
costs traces, never a decision.
"""

from __future__ import annotations

import logging
import os
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import deque
from typing import Final

import msgspec

from mooring.errors import ConfigError, Problem
from mooring.lens.record_entry import RecordEntry, micros
from mooring.lens.record_export import Row, otlp_traces

log = logging.getLogger(__name__)

PERIOD: Final = 1.0  # seconds between two requests
SLOW: Final = 0.1  # seconds of a decision
MOST_WAITING: Final = 10_000  # attempts; more are lost
_TIMEOUT: Final = 10.0  # seconds
_PATH: Final = "/v1/traces"
_HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"  # as of OpenTelemetry: key=value,key=value


class OtlpPush:
    """Fulfils `lens.record.RecordSink`; sends from `start` until `close`.

    `share`, 0 to 1, of all attempts is sent; `run` tells apart what several processes send.
    """

    def __init__(self, url: str, *, share: float, run: int) -> None:
        self.lost: int = 0  # attempts that were not sent
        self._url = _traces_url(url)
        self._headers = {"Content-Type": "application/json", **_given_headers()}
        self._every = round(1 / share) if share else 0
        self._run = run
        self._waiting: deque[RecordEntry] = deque()
        self._ends = threading.Event()
        self._is_failing = False
        self._thread = threading.Thread(target=self._send_all, name="otlp", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Send what is left."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_TIMEOUT)

    # --- on the loop of the scheduler ----------------------------------------------------------

    def decided(self, entry: RecordEntry) -> None:
        if entry.outcome != "scheduled" and self._is_wanted(entry):
            self._append(entry)

    def ended(self, entry: RecordEntry) -> None:
        if entry.bind != "ok" or self._is_wanted(entry):
            self._append(entry)

    def _is_wanted(self, entry: RecordEntry) -> bool:
        return (
            (self._every and not entry.seq % self._every)
            or entry.took >= SLOW
            or entry.outcome == "error"
        )

    def _append(self, entry: RecordEntry) -> None:
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(entry)
        else:
            self.lost += 1

    # --- in the thread -------------------------------------------------------------------------

    def _send_all(self) -> None:
        while not self._ends.wait(PERIOD):
            self._send()
        self._send()

    def _send(self) -> None:
        some = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not some:
            return
        body = msgspec.json.encode(otlp_traces(_row(entry, self._run) for entry in some))
        request = urllib.request.Request(self._url, body, self._headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                answer.read()
        except (OSError, ValueError) as error:  # urllib.error.URLError is an OSError
            self.lost += len(some)
            if not self._is_failing:  # once, until it works again
                text = "traces can't be sent; scheduling goes on"
                log.warning(text, extra={"url": self._url, "error": str(error)})
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
    }

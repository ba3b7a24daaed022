"""Health checks for /healthz, /livez and /readyz.

The formats are those of Kubernetes components, except that a failed check shows its reason.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final, Literal

import msgspec

log = logging.getLogger(__name__)

Endpoint = Literal["healthz", "livez", "readyz"]
Check = Callable[[], str]  # "" means fine, anything else is the reason why not

ENDPOINTS: Final[tuple[Endpoint, ...]] = ("healthz", "livez", "readyz")


class HealthResult(msgspec.Struct, frozen=True):
    """The result of an endpoint."""

    healthy: bool
    text: str


def _ping() -> str:
    return ""


class Health:
    """The checks of a process. Each endpoint runs its own, in the order they were added."""

    def __init__(self) -> None:
        self._checks: dict[Endpoint, dict[str, Check]] = {
            "healthz": {"ping": _ping},
            "livez": {"ping": _ping},
            "readyz": {},
        }
        self._notes: dict[Endpoint, dict[str, Check]] = {one: {} for one in ENDPOINTS}
        self._failing: dict[Endpoint, tuple[str, ...]] = {}  # as last logged

    def add(self, name: str, check: Check, *, on: Iterable[Endpoint]) -> None:
        """Run `check` on these endpoints from now on. It must not block."""
        for endpoint in on:
            if name in self._checks[endpoint]:
                raise ValueError(f"{endpoint} has a check called {name} already")
            self._checks[endpoint][name] = check

    def add_note(self, name: str, note: Check, *, on: Iterable[Endpoint]) -> None:
        """Show the text of `note`, if any, in verbose results; it is not a check."""
        for endpoint in on:
            self._notes[endpoint][name] = note

    def check(
        self, endpoint: Endpoint, *, verbose: bool = False, exclude: Collection[str] = ()
    ) -> HealthResult:
        """Run all checks but those to `exclude`; failures are always shown in full."""
        checks = self._of(endpoint)
        lines: list[str] = []
        failed: dict[str, str] = {}
        for name, check in checks.items():
            if name in exclude:
                lines.append(f"[+]{name} excluded: ok")
                continue
            reason = _run(check)
            if reason:
                failed[name] = reason
            lines.append(f"[-]{name} failed: {reason}" if reason else f"[+]{name} ok")
        for name, note in self._notes[endpoint].items():
            text = _run(note)
            if text:
                lines.append(f"[+]{name} ok: {text}")
        unknown = sorted(set(exclude) - checks.keys())
        if unknown:
            names = ",".join(map(json.dumps, unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if not exclude:  # with exclusions the result is only what the client chose
            self._note(endpoint, failed)
        if not (failed or verbose):
            return HealthResult(True, "ok")
        lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
        return HealthResult(not failed, "\n".join([*lines, ""]))

    def single(self, endpoint: Endpoint, name: str) -> HealthResult | None:
        """One check alone; None if there is no such check."""
        check = self._of(endpoint).get(name)
        if check is None:
            return None
        reason = _run(check)
        if reason:
            return HealthResult(False, f"internal server error: {reason}\n")
        return HealthResult(True, "ok")

    def _of(self, endpoint: Endpoint) -> dict[str, Check]:
        """An endpoint without checks has the ping check."""
        return self._checks[endpoint] or {"ping": _ping}

    def _note(self, endpoint: Endpoint, failed: dict[str, str]) -> None:
        """Log what has changed since last time; probes come every few seconds."""
        names = tuple(failed)
        if names == self._failing.get(endpoint, ()):
            return
        self._failing[endpoint] = names
        if failed:
            log.info("health check failed", extra={"endpoint": endpoint, "checks": failed})
        else:
            log.info("health check passes again", extra={"endpoint": endpoint})


def _run(check: Check) -> str:
    """The reason in one line, so that it can't look like the line of another check."""
    try:
        reason = check()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    return " ".join(reason.split())

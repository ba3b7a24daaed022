"""Checks of an API server: reachable, healthy, of a version we know, its clock, our permissions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from mooring.cli.doctor.findings import DoctorFinding, ok, problem, warning
from mooring.client.client import ApiClient
from mooring.client.permissions import Permission, PermissionCheck
from mooring.client.transport import Request, Response, Transport

_TESTED: Final = (1, 36)
_OLDEST: Final = (1, 32)  # with the default plugins' kinds in the versions that are read
_SKEW: Final = 2.0  # seconds; a lease is renewed every 2 s
_SHOWN: Final = 5  # missing permissions


class _Version(msgspec.Struct, rename="camel"):
    major: str = ""
    minor: str = ""
    git_version: str = ""


async def check_server(transport: Transport, address: str) -> list[DoctorFinding]:
    """Raises ApiError if the server cannot be reached."""
    began = time.time()
    answer = await transport.send(Request(method="GET", path="/version"))
    took = time.time() - began
    found = [ok("server", f"{address} answers in {took * 1000:.0f} ms")]
    found += [_version(answer), *_clock(answer, began + took / 2)]
    ready = await transport.send(Request(method="GET", path="/readyz"))
    if ready.status >= 500:
        why = ready.body.decode(errors="replace").strip().splitlines()
        text = f"not ready: {why[0] if why else ready.status}"
        found.append(warning("server", text, "look at /readyz?verbose of the API server"))
    return found


def _version(answer: Response) -> DoctorFinding:
    try:
        version = msgspec.json.decode(answer.body, type=_Version)
        number = int(version.major), int("".join(filter(str.isdigit, version.minor)))
    except (msgspec.DecodeError, ValueError):
        return problem("server", "/version is not Kubernetes'", "check the address")
    name = f"Kubernetes {version.git_version}"
    if number < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        return warning("server", f"{name} is older than {oldest}", "expect kinds that are missing")
    if number > _TESTED:
        tested = ".".join(map(str, _TESTED))
        text = f"{name} is newer than {tested}, to which decisions are equal"
        return warning("server", text, "new scheduling fields of pods are not known here")
    return ok("server", name)


def _clock(answer: Response, local: float) -> Iterator[DoctorFinding]:
    date = answer.headers.get("date")
    if date is None:
        return
    try:
        # The header has whole seconds: half of one is its mean rest.
        skew = local - (parsedate_to_datetime(date).timestamp() + 0.5)
    except ValueError:
        return
    if abs(skew) < _SKEW:
        yield ok("clock", f"within {_SKEW:g} s of the server's")
    else:
        which = "ahead of" if skew > 0 else "behind"
        yield warning(
            "clock",
            f"{abs(skew):.0f} s {which} the server's",
            "synchronise it (NTP): ages of pods and leases are told wrongly",
        )


async def check_permissions(client: ApiClient, needed: Sequence[Permission]) -> list[DoctorFinding]:
    """Whether the user of the kubeconfig may do what the scheduler needs."""
    check = PermissionCheck(client, needed)
    await check.ask_all()
    if check.unanswered:
        text = f"the server does not say: {check.unanswered}"
        return [warning("rights", text, "allow selfsubjectaccessreviews")]
    if not check.missing:
        return [ok("rights", f"all {len(check.needed)} are there")]
    named = "; ".join(map(str, check.missing[:_SHOWN]))
    more = len(check.missing) - _SHOWN
    text = f"missing: {named}{f' and {more} more' if more > 0 else ''}"
    return [problem("rights", text, "`mooring manifests` prints the roles that it needs")]

"""Credentials from a command, such as the login tool of a cloud: client.authentication.k8s.io.

    none ──headers()──▶ running ──▶ kept ──shortly before expiry, or renew()──▶ running
                           └─ fails ─▶ kept, if there is something that has not expired yet
                                       none, and all waiting callers get the error

One run at a time, shared by all callers that come meanwhile. The command starts when the first
request needs it, not when the kubeconfig is read.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final

import msgspec

from mooring.api.unreadable import NOT_JSON, why_unreadable
from mooring.client._confidential import Confidential
from mooring.client._subprocess import CommandFailed, printable, run_command
from mooring.client.credentials import token_problem
from mooring.client.endpoint import Headers
from mooring.client.errors import Unreachable
from mooring.client.file_watch import Clock
from mooring.client.tls import Identity, Pem, build_context
from mooring.errors import ConfigError

log = logging.getLogger(__name__)

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INTERACTIVE_MODES: Final = ("Never", "IfAvailable", "Always")

_SECRET: Final = re.compile("SECRET|TOKEN|PASS|KEY|CREDENTIAL", re.IGNORECASE)
_TIME_LIMIT: Final = 60.0  # seconds for one run
_LEEWAY: Final = 60.0  # seconds before the end of a credential when a new one is fetched
_BETWEEN_RUNS: Final = 5.0  # seconds in which refused requests do not make it run again
_FAILURE_KEPT: Final = 1.0  # seconds in which a failure is not tried again


class ClusterInfo(Confidential, frozen=True):
    """What a plugin may learn about the cluster, when `provideClusterInfo` says so."""

    secret: ClassVar[tuple[str, ...]] = ("proxy",)

    server: str
    tls_server_name: str = ""
    insecure: bool = False
    authority: Pem | None = None
    proxy: str = ""  # may hold a password
    disable_compression: bool = False
    config: Any = None  # the extension that belongs to plugins, as it is in the kubeconfig

    def to_json(self) -> dict[str, Any]:
        """As plugins read it: what is empty is left out."""
        authority = self.authority.read() if self.authority is not None else b""
        fields = {
            "server": self.server,
            "tls-server-name": self.tls_server_name,
            "insecure-skip-tls-verify": self.insecure,
            "certificate-authority-data": base64.b64encode(authority).decode(),
            "proxy-url": self.proxy,
            "disable-compression": self.disable_compression,
        }
        return {**{key: value for key, value in fields.items() if value}, "config": self.config}


class ExecSettings(Confidential, frozen=True):
    """The `exec` section of a user."""

    secret: ClassVar[tuple[str, ...]] = ("args", "env")

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: ClusterInfo | None = None


class _Granted(Confidential, frozen=True):
    """The credentials of one run."""

    secret: ClassVar[tuple[str, ...]] = ("headers",)

    headers: Headers
    identity: Identity | None
    expires_at: float | None  # seconds since 1970


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename={"api_version": "apiVersion"}):
    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


class ExecPlugin:
    """Credentials that a command hands out; `identity` is the certificate it gave, if any."""

    def __init__(
        self,
        settings: ExecSettings,
        *,
        environ: Mapping[str, str] = os.environ,
        has_terminal: Callable[[], bool] = _has_terminal,
        clock: Clock = time.monotonic,
        now: Callable[[], float] = time.time,
        time_limit: float = _TIME_LIMIT,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._has_terminal = has_terminal
        self._clock = clock
        self._now = now
        self._time_limit = time_limit
        self._turn = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None  # that of the lock
        self._runs = 0
        self._ran_at = 0.0  # by the clock; meaningless before the first run
        self._granted: _Granted | None = None
        self._renew_at: float | None = None  # seconds since 1970
        self._failure = ""  # of the last run, in words

    def identity(self) -> Identity | None:
        """The client certificate of the last run; the same object until there is another one."""
        return self._granted.identity if self._granted is not None else None

    async def headers(self) -> Headers:
        granted = self._granted
        if granted is None or self._is_due():
            await self._run(lambda: self._granted is None or self._is_due())
            granted = self._granted
        if granted is None:
            # Each caller gets an error of its own: tracebacks are written into the object.
            raise Unreachable(self._failure, sent=False)
        return granted.headers

    async def renew(self) -> bool:
        await self._run(lambda: not self._ran_since(_BETWEEN_RUNS))
        return self._granted is not None and not self._failure

    def _is_due(self) -> bool:
        return self._renew_at is not None and self._now() >= self._renew_at

    def _ran_since(self, seconds: float) -> bool:
        return self._runs > 0 and self._clock() - self._ran_at < seconds

    async def _run(self, is_needed: Callable[[], bool]) -> None:
        """Run the command, unless the run that was waited for makes it superfluous."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a forked copy of the process must not wait for a run of ours
            self._loop, self._turn = loop, asyncio.Lock()
        seen = self._runs
        async with self._turn:
            if self._runs != seen or not is_needed():
                return
            if self._failure and self._ran_since(_FAILURE_KEPT):
                return
            try:
                granted = await self._fetch()
            except Unreachable as error:
                self._fail(str(error))
            else:
                self._grant(granted)
            self._runs += 1
            self._ran_at = self._clock()

    def _grant(self, granted: _Granted) -> None:
        if self._granted is not None and granted.identity == self._granted.identity:
            # The same certificate again stays the same object, and connections stay open.
            granted = msgspec.structs.replace(granted, identity=self._granted.identity)
        self._granted, self._failure = granted, ""
        self._renew_at = self._next_renewal(granted.expires_at)

    def _fail(self, failure: str) -> None:
        self._failure = failure
        end = self._granted.expires_at if self._granted is not None else None
        if end is not None and end <= self._now():
            self._granted = None
        if self._granted is not None:
            self._renew_at = self._next_renewal(end)
            fields = {"error": failure}
            log.warning("exec plugin failed, keeping its last credentials", extra=fields)

    def _next_renewal(self, end: float | None) -> float | None:
        """A minute before the end, or later if the plugin keeps giving out the same credentials."""
        if end is None:
            return None
        left = end - self._now()
        early = min(_LEEWAY, left / 5)
        return end - early if early >= 1 else max(end, self._now() + 1)

    async def _fetch(self) -> _Granted:
        is_interactive = self._is_interactive()
        # Sought in our own path, as other clients do; what is added may change the plugin's.
        program = shutil.which(self._settings.command, path=self._environ.get("PATH"))
        if program is None:
            hint = self._settings.install_hint
            raise self._error("not found" + (f"; {printable(hint)}" if hint else ""))
        try:
            output = await run_command(
                [program, *self._settings.args],
                {**self._environ, **dict(self._settings.env), **self._exec_info(is_interactive)},
                is_interactive=is_interactive,
                time_limit=self._time_limit,
                secrets=[value for name, value in self._settings.env if _SECRET.search(name)],
            )
        except CommandFailed as error:
            raise self._error(str(error)) from error
        return self._read(output)

    def _is_interactive(self) -> bool:
        mode = self._settings.interactive_mode
        if mode == "Never":
            return False
        has_terminal = self._has_terminal()
        if mode == "Always" and not has_terminal:
            raise self._error("interactiveMode is Always and standard input is not a terminal")
        return has_terminal

    def _exec_info(self, is_interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {}
        if self._settings.cluster is not None:
            try:
                spec["cluster"] = self._settings.cluster.to_json()
            except ConfigError as error:
                raise self._error(str(error)) from error
        spec["interactive"] = is_interactive
        asked = {"kind": "ExecCredential", "apiVersion": self._settings.api_version, "spec": spec}
        return {"KUBERNETES_EXEC_INFO": msgspec.json.encode(asked).decode()}

    def _read(self, output: bytes) -> _Granted:
        """What the plugin printed; errors do not quote it."""
        try:
            found = msgspec.json.decode(output, type=_ExecCredential)
        except NOT_JSON as error:
            why = why_unreadable(error)
            raise self._error(f"printed something that is no ExecCredential: {why}") from None
        if complaint := self._problem_of(found):
            raise self._error(complaint)
        status = found.status or _Status()
        identity = None
        if status.client_certificate_data and status.client_key_data:
            certificate = Pem("clientCertificateData", data=status.client_certificate_data.encode())
            key = Pem("clientKeyData", data=status.client_key_data.encode())
            identity = Identity(certificate, key)
            try:
                build_context(identity=identity, insecure=True)
            except ConfigError as error:
                raise self._error(f"printed {error}") from error
        headers = (("authorization", f"Bearer {status.token}"),) if status.token else ()
        end = status.expiration_timestamp
        return _Granted(headers, identity, end.timestamp() if end is not None else None)

    def _problem_of(self, found: _ExecCredential) -> str:
        if found.kind != "ExecCredential":
            return f'printed kind "{printable(found.kind)}", expected "ExecCredential"'
        if found.api_version != self._settings.api_version:
            shown = printable(found.api_version)
            return f'printed apiVersion "{shown}", expected "{self._settings.api_version}"'
        status = found.status
        if status is None:
            return "printed no status"
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            return "printed only one of clientCertificateData and clientKeyData, expected both"
        if not status.token and not status.client_certificate_data:
            return "printed neither a token nor a client certificate"
        problem = token_problem(status.token) if status.token else ""
        return f"printed a bad status.token: {problem}" if problem else ""

    def _error(self, text: str) -> Unreachable:
        return Unreachable(f"exec plugin {self._settings.command}: {text}", sent=False)

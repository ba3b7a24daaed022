"""Credentials as headers: bearer tokens, token files that rotate, passwords, impersonation.

Made by `kubeconfig` and `incluster`, asked by the transport for every request. `exec_plugin` has
the rest. Nothing here shows a secret when it is printed.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from mooring.client.endpoint import Credentials, Headers
from mooring.client.errors import Unreachable
from mooring.client.file_watch import Clock, FileWatch

log = logging.getLogger(__name__)

_LEGAL_IN_HEADER_NAMES = "!#$&'*+-.^_`|~"  # besides letters and digits, RFC 9110


def token_problem(token: str) -> str:
    """Why a text cannot be sent as a bearer token; empty if it can."""
    if not token:
        return "the token is empty"
    if not all("!" <= character <= "~" for character in token):
        # A line break would let the rest of the token pass for another header.
        return "the token has characters that no token has, such as spaces or line breaks"
    return ""


class BearerToken:
    """A token that stays the same."""

    def __init__(self, token: str, scheme: str = "Bearer") -> None:
        self._headers = (("authorization", f"{scheme} {token}"),)

    async def headers(self) -> Headers:
        return self._headers

    async def renew(self) -> bool:
        return False


class BasicAuth(BearerToken):
    """A user name and a password."""

    def __init__(self, username: str, password: str) -> None:
        both = base64.b64encode(f"{username}:{password}".encode()).decode()
        super().__init__(both, "Basic")


class TokenFile:
    """A token in a file that is rotated, as by a kubelet.

    The last token stays in use while the file is missing or empty; `first` is used until the file
    could be read once.
    """

    def __init__(self, path: str, *, first: str = "", clock: Clock = time.monotonic) -> None:
        self.path: str = path
        self._watch = FileWatch([path], clock)
        self._token = first
        self._headers: Headers = ()
        self._trouble = ""
        if first:
            self._take(first)
        self._look()

    @property
    def trouble(self) -> str:
        """Why there is no token at all; empty when there is one."""
        return "" if self._token else self._trouble

    async def headers(self) -> Headers:
        self._look()
        if not self._token:
            raise Unreachable(f"no token: {self.path}: {self._trouble}", sent=False)
        return self._headers

    async def renew(self) -> bool:
        self._look(now=True)
        return self._watch.changed_lately

    def _look(self, *, now: bool = False) -> None:
        # Two rotations within the resolution of the file system's clock look like one: when the
        # server has refused the token, the file is read whatever its stamp says.
        if not self._watch.changed(now=now) and not now:
            return
        try:
            # A token of a few hundred bytes from a local file: not worth a thread.
            token = Path(self.path).read_text(encoding="utf-8").strip()
            trouble = token_problem(token)
        except OSError as error:
            trouble = error.strerror or str(error)
        except UnicodeDecodeError:
            trouble = "not UTF-8 text"
        self._trouble = trouble
        if not trouble:
            self._watch.kept(is_new=bool(self._token) and token != self._token)
            self._take(token)
        elif self._watch.failed() and self._token:
            fields = {"file": self.path, "error": trouble}
            log.warning("token file cannot be read, keeping the last token", extra=fields)

    def _take(self, token: str) -> None:
        self._token = token
        self._headers = (("authorization", f"Bearer {token}"),)


class Impersonation:
    """Credentials with the headers that impersonate another user."""

    def __init__(
        self,
        inner: Credentials | None,
        *,
        user: str,
        uid: str = "",
        groups: Sequence[str] = (),
        extra: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._inner = inner
        # The server reads repeated headers, not a list with commas.
        added = [("impersonate-user", user)]
        if uid:
            added.append(("impersonate-uid", uid))
        added += [("impersonate-group", group) for group in groups]
        for key, values in (extra or {}).items():
            name = f"impersonate-extra-{quote(key, safe=_LEGAL_IN_HEADER_NAMES)}"
            added += [(name, value) for value in values]
        self._added: Headers = tuple(added)

    async def headers(self) -> Headers:
        if self._inner is None:
            return self._added
        return (*await self._inner.headers(), *self._added)

    async def renew(self) -> bool:
        return self._inner is not None and await self._inner.renew()


class WithCertificates:
    """Credentials of an endpoint with TLS: renewing them reloads its certificates as well.

    Without `inner` the client certificate authenticates, if there is one. `renew_certificates` is
    the `renew` of `tls.ReloadingTls`.
    """

    def __init__(self, inner: Credentials | None, renew_certificates: Callable[[], bool]) -> None:
        self._inner = inner
        self._renew_certificates = renew_certificates

    async def headers(self) -> Headers:
        return () if self._inner is None else await self._inner.headers()

    async def renew(self) -> bool:
        is_renewed = self._inner is not None and await self._inner.renew()
        # After the credentials: an exec plugin may have just given us another certificate.
        return self._renew_certificates() or is_renewed

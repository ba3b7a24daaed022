"""TLS contexts for an API server: trusted CAs, the client certificate, and reloading them.

Files are read here, cut into PEM blocks and checked, so that a mistake is reported with its field,
and a half-written file never replaces a good one.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from mooring.client._confidential import Confidential
from mooring.client.file_watch import Clock, FileWatch
from mooring.errors import ConfigError, Problem

log = logging.getLogger(__name__)

_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----\s[^-]*-----END CERTIFICATE-----")
_CERTIFICATE_BEGINS: Final = b"-----BEGIN CERTIFICATE-----"
_KEY: Final = re.compile(
    rb"-----BEGIN (?P<kind>(?:[A-Z0-9]+ )*PRIVATE KEY)-----\s.*?-----END (?P=kind)-----", re.DOTALL
)


class Pem(Confidential, frozen=True):
    """PEM text, in a file or given as it is; `place` is the setting it comes from."""

    secret: ClassVar[tuple[str, ...]] = ("data",)

    place: str
    path: str = ""
    data: bytes = b""

    def read(self) -> bytes:
        """The text; ConfigError when the file cannot be read."""
        if not self.path:
            return self.data
        try:
            return Path(self.path).read_bytes()
        except OSError as error:
            raise self.refusal(f"cannot read: {error.strerror or error}") from error

    def refusal(self, message: str) -> ConfigError:
        """The error that names the setting, and the file it leads to."""
        shown = f"{self.path}: {message}" if self.path else message
        return ConfigError([Problem(self.place, shown)])


class Identity(msgspec.Struct, frozen=True):
    """A client certificate with its chain, and its key."""

    certificate: Pem
    key: Pem


class _Blocks(Confidential, frozen=True):
    """PEM blocks of the files; empty where there is no file."""

    secret: ClassVar[tuple[str, ...]] = ("authority", "identity")

    authority: bytes
    identity: bytes


class ReloadingTls:
    """Makes a new context when certificates have changed; keeps the old one while they are invalid.

    `given` is called each time, for a certificate that does not come from files: another
    certificate must be another object.
    """

    def __init__(
        self,
        *,
        authority: Pem | None = None,
        identity: Identity | None = None,
        insecure: bool = False,
        given: Callable[[], Identity | None] | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._authority = authority
        self._identity = identity
        self._insecure = insecure
        self._given = given
        self._last_given = given() if given is not None else None
        pems = [authority, identity and identity.certificate, identity and identity.key]
        self._watch = FileWatch([pem.path for pem in pems if pem], clock)
        self._watch.changed(now=True)
        self._blocks: _Blocks | None = None  # what the context was made of
        self._context: ssl.SSLContext
        self._load()

    def context(self) -> ssl.SSLContext:
        self._look()
        return self._context

    def renew(self) -> bool:
        """Look at the files at once; whether something changed now or a moment ago."""
        self._look(now=True)
        return self._watch.changed_lately

    def _look(self, *, now: bool = False) -> None:
        given = self._given() if self._given is not None else None
        is_other = given is not self._last_given
        self._last_given = given
        if not self._watch.changed(now=now) and not is_other and not now:
            return
        try:
            is_new = self._load()
        except ConfigError as error:
            if self._watch.failed():
                fields = {"error": str(error)}
                log.warning("certificates cannot be used, keeping the last ones", extra=fields)
            return
        self._watch.kept(is_new=is_new)
        if is_new:
            log.info("certificates reloaded")

    def _load(self) -> bool:
        """Read, and make a context if the content differs from that of the last one."""
        identity = self._last_given or self._identity
        blocks = _read(self._authority, identity)
        # A kubelet rewrites ca.crt with every token: equal content needs no new connections.
        if blocks == self._blocks:
            return False
        self._context = _assemble(blocks, self._authority, identity, insecure=self._insecure)
        self._blocks = blocks
        return True


def build_context(
    authority: Pem | None = None, identity: Identity | None = None, *, insecure: bool = False
) -> ssl.SSLContext:
    """A client's context; ConfigError with all that is wrong with certificates and key."""
    return _assemble(_read(authority, identity), authority, identity, insecure=insecure)


def _assemble(
    blocks: _Blocks, authority: Pem | None, identity: Identity | None, *, insecure: bool
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # RFC 5280 to the letter, as Python 3.13 asks by default, refuses the CAs that many clusters
    # made for themselves: they lack the key usage extension. Go, and so kubectl, accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # As in Go, a certificate that is trusted ends the search, be it an intermediate one.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    problems: list[Problem] = []
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        problems += _trust(context, blocks.authority, authority)
    if identity is not None:
        problems += _show(context, blocks.identity, identity)
    if problems:
        raise ConfigError(problems)
    return context


def _trust(context: ssl.SSLContext, certificates: bytes, source: Pem) -> tuple[Problem, ...]:
    try:
        context.load_verify_locations(cadata=certificates.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        return source.refusal(f"not a certificate: {_reason(error)}").problems
    return ()


def _show(context: ssl.SSLContext, both: bytes, source: Identity) -> tuple[Problem, ...]:
    try:
        with as_file(both) as path:
            context.load_cert_chain(path)
    except (ssl.SSLError, ValueError) as error:
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            return source.key.refusal("the key does not belong to the certificate").problems
        message = f"certificate and key cannot be used: {_reason(error)}"
        return source.certificate.refusal(message).problems
    return ()


def _read(authority: Pem | None, identity: Identity | None) -> _Blocks:
    problems: list[Problem] = []

    def blocks(pem: Pem | None, cut: Callable[[Pem, bytes], bytes]) -> bytes:
        try:
            return b"" if pem is None else cut(pem, pem.read())
        except ConfigError as error:
            problems.extend(error.problems)
            return b""

    trusted = blocks(authority, _certificates)
    key = blocks(identity.key if identity else None, _key)
    shown = blocks(identity.certificate if identity else None, _certificates)
    if problems:
        raise ConfigError(problems)
    return _Blocks(authority=trusted, identity=key + shown)


def _certificates(pem: Pem, text: bytes) -> bytes:
    """The certificates alone: bundles have comments in any language around them."""
    found = _CERTIFICATE.findall(text)
    if len(found) != text.count(_CERTIFICATE_BEGINS):
        raise pem.refusal("a certificate is cut off: it has a beginning and no end")
    if not found:
        raise pem.refusal("expected certificates in PEM, found no -----BEGIN CERTIFICATE-----")
    return b"\n".join(found) + b"\n"


def _key(pem: Pem, text: bytes) -> bytes:
    found = _KEY.search(text)
    if found is None:
        raise pem.refusal("expected a private key in PEM, found no -----BEGIN ... PRIVATE KEY-----")
    if found["kind"].startswith(b"ENCRYPTED") or b"Proc-Type: 4,ENCRYPTED" in found[0]:
        # OpenSSL would ask for the pass phrase at the terminal.
        raise pem.refusal("the private key is encrypted; expected one without a pass phrase")
    return found[0] + b"\n"


def _reason(error: Exception) -> str:
    """OpenSSL's words without its line numbers."""
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    return reason.replace("_", " ").lower() if reason else str(error)


@contextmanager
def as_file(text: bytes) -> Iterator[str]:
    """A path at which OpenSSL finds a text: it reads keys only from files."""
    has_memory_files = hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")
    if sys.platform == "linux" and has_memory_files:
        # In memory: nothing reaches a disk, and no folder has to be writable.
        descriptor = os.memfd_create("identity", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
        return
    descriptor, path = tempfile.mkstemp()  # readable by us alone
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        yield path
    finally:
        os.unlink(path)

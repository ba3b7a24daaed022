"""The serving certificate and the client CA; both are reloaded when their files change.

The files are checked for every connection, so a renewed certificate is served from the next one on.
While a new one can't be used, for instance because its key is not there yet, the former one stays.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mooring.client import certificates
from mooring.client.certificates import Pair
from mooring.client.file_watch import FileWatch
from mooring.errors import ConfigError, Problem, UsageError
from mooring.ui import tls_names

log = logging.getLogger(__name__)

_PAIR: Final = "expected a certificate, and its key without a pass phrase, in PEM"
_AUTHORITIES: Final = "expected certificates in PEM"


class ServingTls:
    """The certificate from a pair of files, from `cert_dir`, or generated for this process.

    `cert_dir` is filled with a self-signed pair, mooring.crt and mooring.key, if it has none. With
    a client CA, clients may show certificates.
    """

    def __init__(
        self,
        *,
        cert_file: str = "",
        key_file: str = "",
        cert_dir: str = "",
        min_version: str = "",
        cipher_suites: Sequence[str] = (),
        client_ca_file: str = "",
    ) -> None:
        if bool(cert_file) != bool(key_file):
            missing = "--tls-private-key-file" if cert_file else "--tls-cert-file"
            raise UsageError([Problem(missing, "certificate and key must be given together")])
        if cert_dir and not cert_file:
            cert_file, key_file = _found_or_made(Path(cert_dir))
        self._pair: Pair | None = None if cert_file else certificates.self_signed()
        self._cert_file = cert_file
        self._key_file = key_file
        self._client_ca_file = client_ca_file
        self._client_ca = b""
        self._ciphers = tls_names.openssl_ciphers(cipher_suites)
        self._min_version = tls_names.minimum_version(min_version)
        self._complaint = ""  # as last logged
        self._watch = FileWatch([cert_file, key_file, client_ca_file], time.monotonic)
        self._watch.changed()
        self._context = self._build()

    def trust_clients(self, ca: bytes) -> None:
        """Trust a further client CA (PEM), which is not in a file."""
        former, self._client_ca = self._client_ca, ca
        try:
            self._context = self._build()
        except ConfigError:
            self._client_ca = former
            raise

    def context(self) -> ssl.SSLContext:
        if not self._watch.changed(now=True):  # an invalid pair is tried only once
            return self._context
        try:
            self._context = self._build()
        except ConfigError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                log.warning("could not renew the serving certificate", extra={"error": str(error)})
        else:
            self._complaint = ""
            log.info("serving a renewed certificate", extra={"file": self._cert_file})
        return self._context

    def _build(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._min_version
        # Sessions are not resumed, so that a certificate that is no longer trusted is refused.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
        context.num_tickets = 0
        if self._ciphers:
            context.set_ciphers(self._ciphers)
        elif self._ciphers is not None:
            context.minimum_version = ssl.TLSVersion.TLSv1_3  # no suite of 1.2 was named
        context.set_alpn_protocols(["http/1.1"])
        with _blaming("--tls-cert-file", self._cert_file, _PAIR):
            pair = self._pair or Pair(_read(self._cert_file), _read(self._key_file))
            certificates.load(context, pair)
        with _blaming("--client-ca-file", self._client_ca_file, _AUTHORITIES):
            authorities = _read(self._client_ca_file) if self._client_ca_file else b""
            if authorities or self._client_ca:
                certificates.trust(context, authorities + b"\n" + self._client_ca)
                context.verify_mode = ssl.CERT_OPTIONAL
        return context


@contextmanager
def _blaming(flag: str, file: str, expected: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        text = f"{file}: {error}"
        if isinstance(error, ssl.SSLError):
            is_strange = error.reason == "KEY_VALUES_MISMATCH"
            text = f"{file}: {'the key does not belong to it' if is_strange else expected}"
        elif isinstance(error, OSError) and error.filename:
            text = f"{error.filename}: {error.strerror}"
        raise ConfigError([Problem(flag, text)]) from error


def _read(file: str) -> bytes:
    return Path(file).read_bytes()


def _found_or_made(folder: Path) -> tuple[str, str]:
    """The pair in this folder; a fresh one if there is none."""
    cert, key = folder / "mooring.crt", folder / "mooring.key"
    if not (cert.exists() and key.exists()):
        pair = certificates.self_signed()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            key.touch(mode=0o600)
            key.chmod(0o600)
            key.write_bytes(pair.key)
            cert.write_bytes(pair.certificate)
        except OSError as error:
            raise ConfigError([Problem("--cert-dir", str(error))]) from error
    return str(cert), str(key)

"""Certificates without files: made on the spot, and loaded from memory.

A container's file system is often read-only, and a private key has no business on a disk.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = datetime.timedelta(days=365)
_SKEW = datetime.timedelta(hours=1)  # a client's clock may be behind ours


class Pair(msgspec.Struct, frozen=True):
    """A certificate, with whatever chain belongs to it, and its private key; both PEM."""

    certificate: bytes
    key: bytes


def self_signed() -> Pair:
    """A fresh certificate for this machine, by all names it can be reached under from itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mooring")])
    now = datetime.datetime.now(datetime.UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,  # it vouches for itself
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(_own_names()), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _own_names() -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
    host = socket.gethostname()
    if host and host.isascii() and host != "localhost":
        names.append(x509.DNSName(host))
    return names


def load(context: ssl.SSLContext, pair: Pair) -> None:
    """Serve this pair; raises ssl.SSLError if its halves do not belong together."""
    with _as_file(pair.certificate + b"\n" + pair.key) as path:
        # An encrypted key would otherwise be asked for at the terminal.
        context.load_cert_chain(path, password=lambda: b"")


def trust(context: ssl.SSLContext, ca: bytes) -> None:
    """Accept what these authorities (PEM) have signed; raises ssl.SSLError if there are none."""
    with _as_file(ca) as path:
        context.load_verify_locations(cafile=path)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """OpenSSL reads keys only from files: one in memory, where there is such a thing."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("mooring-key"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.TemporaryDirectory(prefix="mooring-") as folder:
            path = Path(folder) / "pair.pem"
            path.touch(mode=0o600)
            path.write_bytes(content)
            yield str(path)

"""Certificates for tests: authorities, what they sign, and handshakes without a socket."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mooring.client import certificates

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_BACKDATED = timedelta(days=1)  # clocks of tests may be moved a little
_VALID = timedelta(days=30)


class Pair(certificates.Pair, frozen=True):
    """A certificate and its key, as PEM."""

    @property
    def serial(self) -> int:
        return x509.load_pem_x509_certificate(self.certificate).serial_number

    def write(self, folder: Path, name: str = "tls") -> tuple[Path, Path]:
        """Write name.crt and name.key, each replaced at once; the two paths."""
        paths = (folder / f"{name}.crt", folder / f"{name}.key")
        for path, content in zip(paths, (self.certificate, self.key), strict=True):
            replace(path, content)
        return paths


class Authority:
    """Signs certificates. `plain` leaves out the key usage extension, as old clusters did."""

    def __init__(self, name: str = "tests", *, plain: bool = False) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name)
        builder = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        if not plain:
            builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        signed = builder.sign(self._key, hashes.SHA256())
        self.pem: bytes = signed.public_bytes(serialization.Encoding.PEM)

    def server(self, *hosts: str, is_rsa: bool = False) -> Pair:
        """To serve under these names and addresses, by default on loopback."""
        hosts = hosts or ("localhost", "127.0.0.1")
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        key = rsa.generate_private_key(65537, 2048) if is_rsa else None
        return self._issue(_subject(hosts[0]), ExtendedKeyUsageOID.SERVER_AUTH, names, key)

    def client(self, name: str, groups: Sequence[str] = ()) -> Pair:
        """For a user and its groups, as Kubernetes reads them."""
        return self._issue(_subject(name, groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        subject: x509.Name,
        purpose: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
        key: Key | None = None,
    ) -> Pair:
        key = key or ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return Pair(signed.public_bytes(serialization.Encoding.PEM), key_pem(key))

    def _builder(self, subject: x509.Name, key: Key) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        own, issuer = key.public_key(), self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(own)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + _VALID)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False
            )
        )


def signing_key() -> tuple[bytes, bytes]:
    """A private and a public key, as PEM, for service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return key_pem(key), public


def key_pem(key: Key, password: bytes = b"") -> bytes:
    """A key in PEM, encrypted if there is a password."""
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        encryption = serialization.BestAvailableEncryption(password)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )


def replace(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old or the new content, never half of it."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    fresh.replace(path)


# --- contexts ------------------------------------------------------------------------------------


def server_context(pair: certificates.Pair, clients: Authority | None = None) -> ssl.SSLContext:
    """A server's context; with `clients`, it asks for a certificate of that authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificates.load(context, pair)
    context.set_alpn_protocols(["h2", "http/1.1"])
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.pem.decode())
    return context


@dataclass(frozen=True)
class Handshake:
    """Both ends of a connection that has come about."""

    client: ssl.SSLObject
    server: ssl.SSLObject

    def user(self) -> str:
        """The common name of the certificate that the client showed."""
        shown = self.server.getpeercert(binary_form=True)
        assert shown is not None
        subject = x509.load_der_x509_certificate(shown).subject
        return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def shake_hands(
    client: ssl.SSLContext, server: ssl.SSLContext, name: str = "localhost"
) -> Handshake:
    """A handshake in memory; raises ssl.SSLError when one of them refuses."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(down, up, server_hostname=name),
        server.wrap_bio(up, down, server_side=True),
    )
    waiting = list(ends)
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
    return Handshake(*ends)


def trusting(authority: Authority, client: certificates.Pair | None = None) -> ssl.SSLContext:
    """The TLS of a client that trusts an authority, and may show a certificate."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    if client is not None:
        certificates.load(context, client)
    return context


def _subject(name: str, groups: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    attributes += [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    return x509.Name(attributes)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

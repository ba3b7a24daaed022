"""Certificates without files, for servers: generated, and loaded from memory.

A container's file system is often read-only, and a private key should not be on a disk. Used by
the endpoints of a scheduler and by the embedded API server, which is its own authority.
"""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
from collections.abc import Iterable

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mooring.client.tls import as_file

_VALID = datetime.timedelta(days=365)
_SKEW = datetime.timedelta(hours=1)  # a client's clock may be behind ours

_Key = ec.EllipticCurvePrivateKey


class Pair(msgspec.Struct, frozen=True):
    """A certificate, with whatever chain belongs to it, and its private key; both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates for servers and clients; its key never leaves the process."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        certificate = _begin_authority(self._name, self._key)
        self.certificate: bytes = _pem(certificate.sign(self._key, hashes.SHA256()))

    def server(self, names: Iterable[str] = ()) -> Pair:
        """For a server on this machine; `names` are further names or addresses it goes by."""
        key = ec.generate_private_key(ec.SECP256R1())
        known = [*_own_names(), *map(_general, names)]
        certificate = self._end_entity(_name("mooring"), key).add_extension(
            x509.SubjectAlternativeName(known), critical=False
        )
        return self._signed(certificate, key, ExtendedKeyUsageOID.SERVER_AUTH)

    def client(self, user: str, groups: Iterable[str] = ()) -> Pair:
        """For a user and its groups, as Kubernetes reads them from a certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._end_entity(_name(user, groups), key)
        return self._signed(certificate, key, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _end_entity(self, subject: x509.Name, key: _Key) -> x509.CertificateBuilder:
        return (
            _begin(subject, self._name, key, self._identifier)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
        )

    def _signed(
        self, builder: x509.CertificateBuilder, key: _Key, purpose: x509.ObjectIdentifier
    ) -> Pair:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), _key_pem(key))


def self_signed() -> Pair:
    """A fresh certificate for this machine, by all names it can be reached under from itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _begin_authority(_name("mooring"), key)
        .add_extension(x509.SubjectAlternativeName(_own_names()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(_pem(certificate), _key_pem(key))


def _begin_authority(name: x509.Name, key: _Key) -> x509.CertificateBuilder:
    """A certificate that its own key signs."""
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        _begin(name, name, key, identifier)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )


def _begin(
    subject: x509.Name, issuer: x509.Name, key: _Key, authority: x509.SubjectKeyIdentifier
) -> x509.CertificateBuilder:
    """What all certificates have; `authority` identifies the key that will sign this one."""
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority),
            critical=False,
        )
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str, groups: Iterable[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: _Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _own_names() -> list[x509.GeneralName]:
    names = ["localhost", "127.0.0.1", "::1"]
    host = socket.gethostname()
    if host and host.isascii() and host != "localhost":
        names.append(host)
    return [_general(name) for name in names]


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def load(context: ssl.SSLContext, pair: Pair) -> None:
    """Serve this pair; raises ssl.SSLError if its halves do not belong together."""
    with as_file(pair.certificate + b"\n" + pair.key) as path:
        # An encrypted key would otherwise be asked for at the terminal.
        context.load_cert_chain(path, password=lambda: b"")


def trust(context: ssl.SSLContext, ca: bytes) -> None:
    """Accept what these authorities (PEM) have signed; raises ssl.SSLError if there are none."""
    with as_file(ca) as path:
        context.load_verify_locations(cafile=path)

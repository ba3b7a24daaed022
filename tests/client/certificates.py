"""Certificates for tests: an authority, what it signs, and handshakes without a socket."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return certificate, key


class Authority:
    """Signs certificates. `plain` leaves out the key usage extension, as old clusters did."""

    def __init__(self, name: str = "test-ca", *, plain: bool = False) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = _builder(self._name, self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        if not plain:
            builder = builder.add_extension(_SIGNS, critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.pem: bytes = self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, *names: str) -> Pair:
        """For a server; names that look like addresses are addresses."""
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        return self._sign(names[0], alternatives)

    def client(self, name: str, *groups: str) -> Pair:
        """For a user and its groups, as Kubernetes reads them."""
        return self._sign(name, None, groups)

    def _sign(
        self,
        name: str,
        alternatives: x509.SubjectAlternativeName | None,
        groups: tuple[str, ...] = (),
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name, groups), self._name, key.public_key())
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))


_SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def key_pem(key: ec.EllipticCurvePrivateKey, password: bytes = b"") -> bytes:
    """A key in PEM, encrypted if there is a password."""
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        encryption = serialization.BestAvailableEncryption(password)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )


def server_context(pair: Pair, clients: Authority | None = None) -> ssl.SSLContext:
    """A server's context; with `clients`, it asks for a certificate of that authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        context.load_cert_chain(*pair.write(Path(folder), "server"))
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


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
    )


def _name(common: str, groups: tuple[str, ...] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    attributes += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name(attributes)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)

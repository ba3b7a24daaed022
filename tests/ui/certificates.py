"""Certificates for tests: an authority, and what it signs."""

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mooring.client.certificates import Pair

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
_DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates for servers on loopback and for clients."""

    def __init__(self, name: str = "tests") -> None:
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        made = self._builder(self._name, self._key).add_extension(constraints, critical=True)
        signed = made.sign(self._key, hashes.SHA256())
        self.pem = signed.public_bytes(serialization.Encoding.PEM)

    def server(self, *, is_rsa: bool = False) -> Pair:
        key: Key = (
            rsa.generate_private_key(65537, 2048)
            if is_rsa
            else ec.generate_private_key(ec.SECP256R1())
        )
        names = x509.SubjectAlternativeName(
            [
                x509.DNSName("localhost"),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            ]
        )
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        made = self._builder(subject, key).add_extension(names, critical=False)
        return self._signed(made, key, ExtendedKeyUsageOID.SERVER_AUTH)

    def client(self, name: str, groups: Sequence[str] = ()) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        if name:
            parts.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        made = self._builder(x509.Name(parts), key)
        return self._signed(made, key, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _builder(self, subject: x509.Name, key: Key) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
        )

    def _signed(self, made: x509.CertificateBuilder, key: Key, use: x509.ObjectIdentifier) -> Pair:
        made = made.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        certificate = made.sign(self._key, hashes.SHA256())
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )


def write(pair: Pair, folder: Path, name: str = "tls") -> tuple[str, str]:
    """Put a pair into files, as a new mount of a Secret would: under the same names."""
    paths = (folder / f"{name}.crt", folder / f"{name}.key")
    for path, content in zip(paths, (pair.certificate, pair.key), strict=True):
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.replace(path)
    return str(paths[0]), str(paths[1])


def trusting(ca: bytes, folder: Path | None = None, client: Pair | None = None) -> ssl.SSLContext:
    """A client's view: whom it trusts and what it shows."""
    context = ssl.create_default_context(cadata=ca.decode())
    if client is not None:
        assert folder is not None, "a client's certificate needs a folder"
        context.load_cert_chain(*write(client, folder, "client"))
    return context

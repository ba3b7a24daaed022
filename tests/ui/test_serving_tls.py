"""Certificates, over real handshakes on loopback."""

import os
import socket
import ssl
import stat
from pathlib import Path

import pytest
from tests.certificates import Authority, Pair, trusting

from mooring.client import certificates
from mooring.errors import ConfigError
from mooring.ui.serving_tls import ServingTls


def greet(serving: ServingTls, client: ssl.SSLContext, host: str = "localhost") -> ssl.SSLObject:
    """Shake hands in memory; returns the client's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = serving.context().wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname=host)
    waiting = [theirs, ours]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
    return theirs


def shown(serving: ServingTls) -> bytes:
    """The certificate a client gets to see, DER."""
    anybody = ssl.create_default_context()
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    found = greet(serving, anybody).getpeercert(binary_form=True)
    assert found is not None
    return found


def der(pair: Pair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", socket.gethostname()])
def test_makes_up_a_certificate_for_this_machine(host: str) -> None:
    serving = ServingTls()
    pem = ssl.DER_cert_to_PEM_cert(shown(serving))
    client = ssl.create_default_context(cadata=pem)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    assert greet(serving, client, host).version() == "TLSv1.3"


def test_keeps_the_made_up_certificate_while_it_runs() -> None:
    serving = ServingTls()
    assert shown(serving) == shown(serving)
    assert shown(serving) != shown(ServingTls())


def test_leaves_a_made_up_pair_in_a_folder_and_finds_it_again(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    first = shown(ServingTls(cert_dir=str(folder)))
    assert sorted(os.listdir(folder)) == ["mooring.crt", "mooring.key"]
    assert stat.S_IMODE((folder / "mooring.key").stat().st_mode) == 0o600
    assert shown(ServingTls(cert_dir=str(folder))) == first


def test_serves_the_certificate_it_is_given(tmp_path: Path) -> None:
    authority = Authority()
    cert_file, key_file = map(str, authority.server().write(tmp_path))
    serving = ServingTls(cert_file=cert_file, key_file=key_file, cert_dir=str(tmp_path / "unused"))
    greet(serving, trusting(authority))
    assert not (tmp_path / "unused").exists()


@pytest.mark.parametrize(("before", "after"), [(False, False), (True, False), (False, True)])
def test_serves_a_renewed_certificate_from_the_next_connection_on(
    tmp_path: Path, before: bool, after: bool
) -> None:
    authority = Authority()
    old, new = authority.server(is_rsa=before), authority.server(is_rsa=after)
    cert_file, key_file = map(str, old.write(tmp_path))
    serving = ServingTls(cert_file=cert_file, key_file=key_file)
    assert shown(serving) == der(old)
    new.write(tmp_path)
    assert shown(serving) == der(new)
    # Also for a client that can do with the old kind of key only.
    client = trusting(authority)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256" if before else "ECDHE+AESGCM")
    if before and not after:
        with pytest.raises(ssl.SSLError):
            greet(serving, client)
    else:
        greet(serving, client)


def test_keeps_the_old_certificate_until_the_new_one_is_complete(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority()
    old, new = authority.server(), authority.server()
    cert_file, key_file = map(str, old.write(tmp_path))
    serving = ServingTls(cert_file=cert_file, key_file=key_file)
    Path(cert_file).write_bytes(new.certificate)
    assert shown(serving) == der(old)
    Path(key_file).unlink()
    assert shown(serving) == der(old)
    Path(key_file).write_bytes(b"")
    assert shown(serving) == der(old)
    assert all(line.levelname == "WARNING" for line in caplog.records)
    Path(key_file).write_bytes(new.key)
    assert shown(serving) == der(new)


def test_complains_once_about_a_certificate_that_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert_file, key_file = map(str, Authority().server().write(tmp_path))
    serving = ServingTls(cert_file=cert_file, key_file=key_file)
    Path(cert_file).unlink()
    for _ in range(5):
        serving.context()
    (line,) = caplog.records
    assert cert_file in vars(line)["error"]


@pytest.mark.parametrize("missing", ["cert", "key"])
def test_wants_both_halves_of_a_pair(missing: str) -> None:
    given = {"key_file": "k"} if missing == "cert" else {"cert_file": "c"}
    flag = "--tls-cert-file" if missing == "cert" else "--tls-private-key-file"
    with pytest.raises(ConfigError, match=f"{flag}: certificate and key must be given together"):
        ServingTls(**given)


def test_does_not_start_with_files_that_cannot_be_used(tmp_path: Path) -> None:
    authority = Authority()
    _, key_file = map(str, authority.server().write(tmp_path))
    other_cert, _ = map(str, authority.server().write(tmp_path, "other"))
    with pytest.raises(ConfigError, match=r"--tls-cert-file: .*other.crt.*the key does not belong"):
        ServingTls(cert_file=other_cert, key_file=key_file)
    with pytest.raises(ConfigError, match=r"--tls-cert-file: .*nowhere"):
        ServingTls(cert_file=str(tmp_path / "nowhere"), key_file=key_file)
    with pytest.raises(ConfigError, match=r"--client-ca-file: .*nowhere"):
        ServingTls(client_ca_file=str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match=r"--client-ca-file: .*tls.key"):
        ServingTls(client_ca_file=key_file)
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(ConfigError, match="--cert-dir"):
        ServingTls(cert_dir=str(blocked))


def test_does_not_ask_the_terminal_for_the_password_of_a_key(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric import ec

    locked = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(b"secret")
    )
    cert_file, key_file = map(str, Pair(Authority().server().certificate, locked).write(tmp_path))
    with pytest.raises(ConfigError, match="--tls-cert-file"):
        ServingTls(cert_file=cert_file, key_file=key_file)


def test_works_where_there_are_no_files_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    assert shown(ServingTls())


def test_shows_nobody_the_key_it_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "memfd_create"):
        pytest.skip("needs files in memory")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    certificates.load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificates.self_signed())
    assert not os.listdir(tmp_path)


# --- versions and cipher suites ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "client", "version"),
    [
        ("", ssl.TLSVersion.TLSv1_2, "TLSv1.2"),
        ("", ssl.TLSVersion.TLSv1_3, "TLSv1.3"),
        ("VersionTLS12", ssl.TLSVersion.TLSv1_2, "TLSv1.2"),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_3, "TLSv1.3"),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_2, None),
    ],
)
def test_speaks_the_versions_it_is_told_to(
    tmp_path: Path, wanted: str, client: ssl.TLSVersion, version: str | None
) -> None:
    authority = Authority()
    cert_file, key_file = map(str, authority.server().write(tmp_path))
    serving = ServingTls(cert_file=cert_file, key_file=key_file, min_version=wanted)
    context = trusting(authority)
    context.maximum_version = client
    if version is None:
        with pytest.raises(ssl.SSLError):
            greet(serving, context)
    else:
        assert greet(serving, context).version() == version


def test_uses_the_cipher_suites_it_is_told_to(tmp_path: Path) -> None:
    authority = Authority()
    cert_file, key_file = map(str, authority.server().write(tmp_path))
    serving = ServingTls(
        cert_file=cert_file,
        key_file=key_file,
        cipher_suites=["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"],
    )
    context = trusting(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    cipher = greet(serving, context).cipher()
    assert cipher is not None
    assert cipher[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        greet(serving, context)


def test_speaks_no_tls_12_without_a_suite_for_it(tmp_path: Path) -> None:
    authority = Authority()
    cert_file, key_file = map(str, authority.server().write(tmp_path))
    serving = ServingTls(
        cert_file=cert_file, key_file=key_file, cipher_suites=["TLS_AES_256_GCM_SHA384"]
    )
    context = trusting(authority)
    assert greet(serving, context).version() == "TLSv1.3"
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        greet(serving, context)


def test_lists_what_it_knows_when_it_is_told_something_else() -> None:
    with pytest.raises(ConfigError, match=r'--tls-min-version: unknown tls version "TLS1.2", exp'):
        ServingTls(min_version="TLS1.2")
    with pytest.raises(ConfigError) as caught:
        ServingTls(cipher_suites=["TLS_RSA_WITH_RC4_128_SHA", "TLS_AES_128_GCM_SHA256", "X"])
    assert len(caught.value.problems) == 2
    text = str(caught.value)
    assert "Cipher suite TLS_RSA_WITH_RC4_128_SHA not supported or doesn't exist" in text
    assert "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" in text


# --- certificates of clients ---------------------------------------------------------------------


def test_trusts_clients_of_an_authority_that_comes_later(tmp_path: Path) -> None:
    authority, serving = Authority(), ServingTls()
    assert serving.context().verify_mode is ssl.CERT_NONE
    serving.trust_clients(authority.pem)
    assert serving.context().verify_mode is ssl.CERT_OPTIONAL
    with pytest.raises(ConfigError, match="--client-ca-file"):
        serving.trust_clients(b"nonsense")
    assert serving.context().verify_mode is ssl.CERT_OPTIONAL


def test_reads_authorities_with_comments(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes("# für Kunden\n".encode() + Authority().pem)
    assert ServingTls(client_ca_file=str(file)).context().verify_mode is ssl.CERT_OPTIONAL

"""TLS: whom we trust, what we show, and what rotation does."""

from __future__ import annotations

import logging
import os
import ssl
import sys
import tempfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.certificates import Authority, Pair, key_pem, server_context, shake_hands

from mooring.client.tls import Identity, Pem, ReloadingTls, build_context
from mooring.errors import ConfigError

CA = Authority()
OTHER_CA = Authority("other-ca")
SERVER = CA.server("localhost", "127.0.0.1", "::1")
ALICE = CA.client("alice", ["admins"])
BOB = CA.client("bob")


class Clock:
    def __init__(self) -> None:
        self.now: float = 100.0

    def __call__(self) -> float:
        return self.now


def data(text: bytes, place: str = "here") -> Pem:
    return Pem(place, data=text)


def identity(pair: Pair) -> Identity:
    return Identity(data(pair.certificate, "certificate"), data(pair.key, "key"))


def complaints(error: pytest.ExceptionInfo[ConfigError]) -> list[str]:
    return [str(problem) for problem in error.value.problems]


# --- trusting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_trusts_a_server_of_its_authority(name: str) -> None:
    made = shake_hands(build_context(data(CA.pem)), server_context(SERVER), name)
    assert made.client.selected_alpn_protocol() == "http/1.1"


def test_refuses_a_server_of_another_authority() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(build_context(data(OTHER_CA.pem)), server_context(SERVER))


def test_refuses_a_server_of_another_name() -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        shake_hands(build_context(data(CA.pem)), server_context(SERVER), "elsewhere")


def test_trusts_each_of_several_authorities_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "bundle.crt"
    file.write_bytes("# Főtanúsítvány\n".encode() + OTHER_CA.pem + b"\nmore words\n" + CA.pem)
    context = build_context(Pem("here", path=str(file)))
    for authority in (CA, OTHER_CA):
        shake_hands(context, server_context(authority.server("localhost")))


def test_trusts_an_authority_without_key_usage() -> None:
    old = Authority(plain=True)
    context = build_context(data(old.pem))
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    shake_hands(context, server_context(old.server("localhost")))


def test_trusts_a_certificate_that_is_itself_in_the_bundle() -> None:
    # As with Go: the bundle need not reach up to a root.
    shake_hands(build_context(data(SERVER.certificate)), server_context(SERVER))


def test_asks_the_system_whom_to_trust_when_no_authority_is_given() -> None:
    context = build_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(context, server_context(SERVER))


def test_trusts_anybody_only_when_told_to() -> None:
    shake_hands(build_context(insecure=True), server_context(SERVER), "elsewhere")


def test_speaks_nothing_older_than_tls_1_2() -> None:
    assert build_context().minimum_version is ssl.TLSVersion.TLSv1_2


# --- showing a certificate -----------------------------------------------------------------------


@pytest.mark.parametrize("is_linux", [True, False])
def test_shows_a_certificate_given_as_data(monkeypatch: pytest.MonkeyPatch, is_linux: bool) -> None:
    if not is_linux:
        monkeypatch.setattr(sys, "platform", "elsewhere")
    context = build_context(data(CA.pem), identity(ALICE))
    assert shake_hands(context, server_context(SERVER, clients=CA)).user() == "alice"


def test_leaves_no_key_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "elsewhere")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def watched(context: ssl.SSLContext, path: str) -> None:
        modes.append(os.stat(path).st_mode & 0o777)
        load(context, path)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    build_context(identity=identity(ALICE), insecure=True)
    assert modes == [0o600]
    assert list(tmp_path.iterdir()) == []


def test_keeps_the_key_in_memory_where_it_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "mkstemp", None)
    build_context(identity=identity(ALICE), insecure=True)


def test_reads_certificate_and_key_from_one_file(tmp_path: Path) -> None:
    file = tmp_path / "current.pem"  # as kubelets keep theirs
    file.write_bytes(ALICE.certificate + ALICE.key)
    both = Identity(Pem("certificate", path=str(file)), Pem("key", path=str(file)))
    made = shake_hands(build_context(data(CA.pem), both), server_context(SERVER, clients=CA))
    assert made.user() == "alice"


# --- explaining ----------------------------------------------------------------------------------


def test_names_all_that_is_wrong(tmp_path: Path) -> None:
    missing = str(tmp_path / "ca.crt")
    with pytest.raises(ConfigError) as error:
        build_context(
            Pem("cluster.ca", path=missing),
            Identity(data(b"no", "user.certificate"), data(b"no", "user.key")),
        )
    assert sorted(complaints(error)) == [
        f"cluster.ca: {missing}: cannot read: No such file or directory",
        "user.certificate: expected certificates in PEM, found no -----BEGIN CERTIFICATE-----",
        "user.key: expected a private key in PEM, found no -----BEGIN ... PRIVATE KEY-----",
    ]


def test_says_that_key_and_certificate_are_strangers() -> None:
    with pytest.raises(ConfigError) as error:
        build_context(identity=identity(Pair(ALICE.certificate, BOB.key)))
    assert complaints(error) == ["key: the key does not belong to the certificate"]


def test_refuses_an_encrypted_key_and_asks_nobody_for_a_pass_phrase() -> None:
    locked = key_pem(ec.generate_private_key(ec.SECP256R1()), b"secret")
    with pytest.raises(ConfigError, match="key: the private key is encrypted"):
        build_context(identity=identity(Pair(ALICE.certificate, locked)))


def test_says_that_a_certificate_is_cut_off() -> None:
    with pytest.raises(ConfigError, match="here: a certificate is cut off"):
        build_context(data(CA.pem + OTHER_CA.pem[:-40]))


def test_says_that_a_certificate_is_none() -> None:
    text = b"-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"
    with pytest.raises(ConfigError, match="here: not a certificate: "):
        build_context(data(text))
    with pytest.raises(ConfigError, match="certificate: certificate and key cannot be used: "):
        build_context(identity=identity(Pair(text, ALICE.key)))


def test_shows_no_key_when_printed() -> None:
    both = identity(ALICE)
    texts = [repr(both), repr(both.key), repr(ReloadingTls(identity=both))]
    assert not any("PRIVATE" in text for text in texts)


# --- rotation ------------------------------------------------------------------------------------


class Files:
    """An authority and a user in files, and what reloads them."""

    def __init__(self, folder: Path) -> None:
        self.authority: Path = folder / "ca.crt"
        self.authority.write_bytes(CA.pem)
        self.certificate, self.key = ALICE.write(folder, "user")
        self.clock: Clock = Clock()
        self.tls: ReloadingTls = ReloadingTls(
            authority=Pem("ca", path=str(self.authority)),
            identity=Identity(
                Pem("certificate", path=str(self.certificate)), Pem("key", path=str(self.key))
            ),
            clock=self.clock,
        )

    def user(self) -> str:
        return shake_hands(self.tls.context(), server_context(SERVER, clients=CA)).user()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def swap(path: Path, text: bytes) -> None:
    """Rename a new file into place: another inode, whatever the clock of the file system says."""
    new = path.with_suffix(".new")
    new.write_bytes(text)
    new.replace(path)


def test_keeps_one_context_while_nothing_changes(files: Files) -> None:
    first = files.tls.context()
    files.clock.now += 60
    assert files.tls.context() is first


def test_trusts_the_new_authority_a_second_after_it_came(files: Files) -> None:
    server = server_context(OTHER_CA.server("localhost"))
    swap(files.authority, OTHER_CA.pem)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(files.tls.context(), server)
    files.clock.now += 1
    shake_hands(files.tls.context(), server)


def test_looks_at_once_when_asked_to_renew(files: Files) -> None:
    assert not files.tls.renew()
    swap(files.authority, OTHER_CA.pem)
    assert files.tls.renew()
    shake_hands(files.tls.context(), server_context(OTHER_CA.server("localhost")))


def test_says_that_it_changed_to_those_who_ask_a_moment_later(files: Files) -> None:
    swap(files.authority, OTHER_CA.pem)
    files.clock.now += 1
    files.tls.context()
    files.clock.now += 1
    assert files.tls.renew()
    files.clock.now += 60
    assert not files.tls.renew()


def test_shows_the_new_certificate_once_both_files_are_there(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    assert files.user() == "alice"
    swap(files.certificate, BOB.certificate)
    files.clock.now += 1
    assert files.user() == "alice"
    swap(files.key, BOB.key)
    files.clock.now += 1
    assert files.user() == "bob"
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1


@pytest.mark.parametrize("half", [b"", CA.pem[:100], None], ids=["empty", "half", "gone"])
def test_keeps_the_old_context_and_warns_once_while_a_file_is_no_good(
    files: Files, half: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    first = files.tls.context()
    if half is None:
        files.authority.unlink()
    else:
        files.authority.write_bytes(half)
    for _ in range(3):
        files.clock.now += 1
        assert files.tls.context() is first
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    swap(files.authority, OTHER_CA.pem)
    files.clock.now += 1
    assert files.tls.context() is not first


def test_warns_again_when_it_goes_wrong_again(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    for text in (b"", CA.pem, b""):
        swap(files.authority, text)
        files.clock.now += 1
        files.tls.context()
    assert len(caplog.records) == 2


def test_keeps_its_context_when_the_same_words_are_written_again(files: Files) -> None:
    first = files.tls.context()
    swap(files.authority, CA.pem)
    files.clock.now += 1
    assert files.tls.context() is first


def test_makes_no_context_in_vain(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    # With the many authorities of a system that takes long, and a server may refuse a lot.
    monkeypatch.setattr(ssl, "SSLContext", None)
    assert not files.tls.renew()


def test_follows_a_link_that_is_swapped(tmp_path: Path) -> None:
    for name, authority in (("one", CA), ("two", OTHER_CA)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ca.crt").write_bytes(authority.pem)
    data_link = tmp_path / "..data"
    data_link.symlink_to("one")
    (tmp_path / "ca.crt").symlink_to("..data/ca.crt")
    clock = Clock()
    reloading = ReloadingTls(authority=Pem("ca", path=str(tmp_path / "ca.crt")), clock=clock)
    (tmp_path / "..tmp").symlink_to("two")
    (tmp_path / "..tmp").replace(data_link)
    clock.now += 1
    shake_hands(reloading.context(), server_context(OTHER_CA.server("localhost")))


def test_shows_the_certificate_that_somebody_gives_it() -> None:
    given: list[Identity | None] = [None]
    reloading = ReloadingTls(authority=data(CA.pem), given=lambda: given[-1], clock=Clock())
    first = reloading.context()
    for pair, name in ((ALICE, "alice"), (BOB, "bob")):
        given.append(identity(pair))
        made = shake_hands(reloading.context(), server_context(SERVER, clients=CA))
        assert made.user() == name
    assert reloading.context() is not first
    assert reloading.context() is reloading.context()

"""`mooring snapshot`: to standard output, and what redaction asks for."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from tests.simulator.clusters import snapshot

from mooring.cli import main
from mooring.lens.reading import read_snapshot
from mooring.lens.writing import write_snapshot
from mooring.testing import device_class, node


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A snapshot with a class of devices that an expression selects, in the current folder."""
    monkeypatch.chdir(tmp_path)
    gpus = device_class("gpu", "device.driver.startsWith('gpu.')")
    write_snapshot(snapshot(node("secret-n"), gpus), tmp_path / "x.snap.gz")
    return "x.snap.gz"


def test_goes_to_standard_output_alone(
    file: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["snapshot", "--from", file, "-o", "-"]) == 0
    out, err = capsysbinary.readouterr()
    assert err == b""
    (tmp_path / "again.snap.gz").write_bytes(out)
    assert read_snapshot(tmp_path / "again.snap.gz").cluster.nodes[0].metadata.name == "secret-n"


def test_says_what_of_a_dump_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.yaml"
    dump.write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: n}}\n---\n"
        "{apiVersion: v1, kind: Secret, metadata: {name: s}}\n"
    )
    assert main(["snapshot", "--from", str(dump), "-o", str(tmp_path / "y.snap.gz")]) == 0
    said = capsys.readouterr().err
    assert said == f"{dump}: not used, because no plugin reads them: Secret\n"


def test_says_what_stays_legible_because_a_selector_reads_it(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["snapshot", "--from", file, "--redact", "all", "-o", "r.snap.gz"]) == 0
    assert "not redacted: drivers, attributes and selectors of devices" in capsys.readouterr().err
    written = gzip.decompress((tmp_path / "r.snap.gz").read_bytes())
    assert b"secret-n" not in written
    assert b"startsWith('gpu.')" in written


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("--key-file", "key"), 2, "--key-file: is for --redact, which is not given"),
        (("--redact", "all", "--key-file", "none"), 1, "none: No such file or directory"),
        (("--redact", "all", "--key-file", "key"), 1, "key: expected at least 16 bytes, found 5;"),
    ],
)
def test_what_is_wrong_with_a_key_is_one_line(
    words: tuple[str, ...],
    code: int,
    why: str,
    file: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "key").write_text("short")
    assert main(["snapshot", "--from", file, "-o", "y.snap.gz", *words]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(why)
    assert not (tmp_path / "y.snap.gz").exists()

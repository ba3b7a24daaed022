"""Where the programs come from, and what is said when they can't be had."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import golang
from tests.controlplane.build import PROGRAMS, ControlPlaneError, binaries


def test_programs_are_taken_from_the_folder_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORING_KUBE_BIN", str(tmp_path))
    with pytest.raises(ControlPlaneError, match=r"MOORING_KUBE_BIN names .* lacks etcd, kube-api"):
        binaries()
    for name in PROGRAMS:
        (tmp_path / name).touch(mode=0o755)
    assert binaries() == tmp_path


def test_missing_go_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOORING_KUBE_BIN", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(golang, "go", lambda: None)
    with pytest.raises(ControlPlaneError, match="there is no Go on this machine"):
        binaries()

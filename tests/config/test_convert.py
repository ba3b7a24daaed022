"""Conversions compared with files that were read by hand.

`python -m tests.config.test_convert` writes the expected files anew, to be looked at with git diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.config.old_files import OLD, SEEDS, expected

from mooring import config as cfg

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def converted(text: str) -> str:
    return cfg.to_v1_yaml(cfg.read_text(text))


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.name)
def test_converts_as_expected(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(old.parent)  # places in notes are given as the file was
    assert cfg.to_v1_yaml(cfg.read_file(old.name)) == expected(old).read_text()


@pytest.mark.parametrize("old", [*OLD, *SEEDS], ids=lambda path: path.name)
def test_converts_its_own_output_to_the_same(old: Path) -> None:
    first = cfg.read_file(old)
    text = cfg.to_v1_yaml(first)
    again = cfg.read_text(text)
    assert again.notes == ()
    assert again.config == first.config
    assert cfg.to_v1_yaml(again) == text


@pytest.mark.parametrize("seed", SEEDS, ids=lambda path: path.name)
def test_loads_the_configurations_people_begin_with(seed: Path) -> None:
    assert seed.read_text().startswith("# ")  # what was mended, if anything
    assert cfg.read_file(seed).config.profiles


def test_orders_and_normalises_a_file_of_today() -> None:
    text = """
profiles:
- plugins: {score: {disabled: [{name: NodeName}], enabled: [{weight: 3, name: ImageLocality}]}}
  schedulerName: a
podMaxBackoffSeconds: 30
extenders:
- {weight: 1, urlPrefix: "http://x", httpTimeout: 90s, tlsConfig: {caData: YQ==, insecure: false}}
leaderElection: {leaseDuration: 60s, renewDeadline: 0}
clientConnection: null
"""
    assert (
        converted(HEADER + text)
        == f"""{HEADER}leaderElection:
  leaseDuration: 1m0s
  renewDeadline: 0s
podMaxBackoffSeconds: 30
profiles:
- schedulerName: a
  plugins:
    score:
      enabled:
      - name: ImageLocality
        weight: 3
      disabled:
      - name: NodeName
extenders:
- urlPrefix: http://x
  weight: 1
  tlsConfig:
    insecure: false
    caData: YQ==
  httpTimeout: 1m30s
"""
    )


def test_keeps_the_comment_that_a_file_opens_with() -> None:
    assert converted(f"# Ours.\n# Keep.\n{HEADER}") == f"# Ours.\n# Keep.\n{HEADER}"


def test_keeps_arguments_as_they_are() -> None:
    text = HEADER + "profiles: [{pluginConfig: [{name: Mine, args: {b: 1, a: {x: null}}}]}]\n"
    document = cfg.read_text(converted(text)).document
    assert document["profiles"][0]["pluginConfig"][0]["args"] == {"b": 1, "a": {"x": None}}


def test_reads_a_lock_that_v1_never_had_as_a_lease_and_says_so() -> None:
    loaded = cfg.read_text(HEADER + "leaderElection: {resourceLock: endpointsleases}\n", "f")
    assert loaded.config.leader_election.resource_lock == "leases"
    assert [note.path for note in loaded.notes] == ["leaderElection.resourceLock"]


if __name__ == "__main__":
    for file in OLD:
        os.chdir(file.parent)
        expected(file).write_text(cfg.to_v1_yaml(cfg.read_file(file.name)))

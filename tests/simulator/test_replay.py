"""A journal decided again: the same, to the byte; and otherwise with another configuration."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.plugins.volumes.storage import claim, storage_class, volume

from mooring.api import codec, core
from mooring.cli import main
from mooring.errors import ConfigError
from mooring.lens import journal as journals
from mooring.lens.explainer import Explainer
from mooring.lens.journal import DecisionJournal
from mooring.lens.journal_reading import JournalFolder
from mooring.lens.record import DecisionRecord
from mooring.simulator import Simulation
from mooring.simulator.replay import Replay, ReplayAnswer
from mooring.testing import node, pod

PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""


def recorded_day(folder: Path, seed: int = 5) -> dict[str, str]:
    """Hours of arrivals, departures, preemptions and node changes; where each pod went."""
    rng = random.Random(seed)
    placed: dict[str, str] = {}
    with Simulation(keep_attempts=False, seed=1) as sim:
        record = DecisionRecord(sim.clock.now)
        journal = DecisionJournal(folder, sim.scheduler)
        journal.start()
        record.add_sink(journal)
        sim.scheduler.ledger = record
        sim.apply(*(node(f"n{i}", cpu=8, zone=f"z{i % 3}") for i in range(9)))
        for number in range(110):
            kind = rng.randrange(4)
            labels = {"app": f"a{number % 4}"}
            options: dict[str, Any] = {"cpu": rng.choice(["500m", 1, 2])}
            if kind == 1:
                options["spread"] = {"zone": 1}
            if kind == 2:
                options["node_selector"] = {"topology.kubernetes.io/zone": f"z{number % 3}"}
            priority = 100 if number % 17 == 0 else 0
            sim.apply(pod(f"p{number}", labels=labels, priority=priority, **options))
            sim.advance(rng.choice([0.1, 1, 60]))
            alive = [one for one in sim.cluster.pods() if one.spec.node_name]
            if len(alive) > 40 and rng.random() < 0.4:
                sim.delete(alive[rng.randrange(len(alive))])
            if number % 40 == 20:
                sim.apply(node(f"late{number}", cpu=4, zone="z1"))
            if number % 50 == 30:
                sim.apply(
                    node(f"n{number % 9}", cpu=8, zone=f"z{number % 3}", taints=["x:NoSchedule"])
                )
        sim.advance(30)
        journal.close()
        for one in sim.cluster.pods():
            placed[one.metadata.name] = one.spec.node_name
    return placed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("journal")
    recorded_day(found)
    return found


def replayed(folder: Path, **options: Any) -> ReplayAnswer:
    return Replay(**options).run(JournalFolder(folder).lines())


def test_with_the_same_configuration_every_placement_is_equal(folder: Path) -> None:
    found = replayed(folder)
    assert found.attempts > 110
    assert (found.different, found.differences, found.skipped) == (0, (), 0)
    assert found.equal == found.attempts


def test_with_another_the_differences_are_told_twice_the_same(folder: Path) -> None:
    found = replayed(folder, config=PACKED, name="packed.yaml")
    assert found.different > 10
    assert found.attempts == found.equal + found.different
    assert len(found.differences) == found.different
    again = replayed(folder, config=PACKED, name="packed.yaml")
    assert msgspec.json.encode(again) == msgspec.json.encode(found)


def test_several_files_are_one_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "HOUR", 300.0)
    recorded_day(tmp_path)
    folder = JournalFolder(tmp_path)
    assert len(folder.files) > 3
    assert replayed(tmp_path).different == 0
    # From any file on: it begins with all that was there.
    for first in range(len(folder.files)):
        found = Replay().run(folder.lines(first_file=first))
        assert (found.different, found.differences) == (0, ())
        assert found.attempts > 0


def test_a_process_that_begins_anew_continues_nothing(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    recorded_day(first)
    recorded_day(second, seed=6)
    both = tmp_path / "both"
    both.mkdir()
    for number, path in enumerate([*JournalFolder(first).files, *JournalFolder(second).files]):
        (both / f"{number:012d}-{path.name.partition('-')[2]}").write_bytes(path.read_bytes())
    parts = [replayed(first), replayed(second)]
    found = replayed(both)
    assert found.attempts == found.equal == sum(part.attempts for part in parts)
    other = replayed(both, config=PACKED, name="packed.yaml")
    assert other.attempts > parts[0].attempts
    # Both count from 1, and the newest is meant.
    pods = {seq: JournalFolder(second).before(seq)[0].cluster.pods for seq in (1, 20, 60)}
    newest = JournalFolder(both)
    assert {seq: newest.before(seq)[0].cluster.pods for seq in pods} == pods
    with pytest.raises(ConfigError, match="no attempt 1, or not yet"):
        newest.before(1, since=1e12)


def test_a_file_that_was_cut_off_is_read_as_far_as_it_goes(folder: Path, tmp_path: Path) -> None:
    path = JournalFolder(folder).files[0]
    whole = path.read_bytes()
    (tmp_path / path.name).write_bytes(whole[: len(whole) * 2 // 3])
    found = replayed(tmp_path)
    assert 0 < found.attempts < replayed(folder).attempts
    assert found.different == 0


def test_a_past_decision_is_explained_exactly(folder: Path) -> None:
    journal = JournalFolder(folder)
    decisions = [line.decide for line in journal.lines() if line.decide is not None]
    for told in decisions[:: len(decisions) // 12]:
        snapshot, api = journal.before(told.seq)
        found = Explainer(snapshot).explain(api, remedies=False)
        if told.outcome == "scheduled":
            assert found.choice is None or found.choice.node == told.node or found.nominated
        else:
            assert found.feasible == 0


def test_what_is_no_journal_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no \*.journal.gz"):
        JournalFolder(tmp_path)
    with pytest.raises(ConfigError, match="the journal has no attempt 99999"):
        JournalFolder(folder).before(99999)


def test_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(folder)]) == 0
    assert "0 otherwise" in capsys.readouterr().out
    (tmp_path / "packed.yaml").write_text(PACKED)
    config = str(tmp_path / "packed.yaml")
    assert main(["replay", str(folder), "--config", config, "-o", "json", "--limit", "5"]) == 3
    found = msgspec.json.decode(capsys.readouterr().out)
    assert len(found["differences"]) == 5
    assert found["different"] > 10
    assert main(["replay", str(tmp_path)]) == 1
    assert "there is no *.journal.gz" in capsys.readouterr().err


def test_explain_at_a_past_attempt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decided = [line.decide for line in JournalFolder(folder).lines() if line.decide is not None]
    told = next(one for one in decided if one.outcome == "scheduled" and one.seq > 20)
    _, api = JournalFolder(folder).before(told.seq)
    words = ["explain", api.key, "--from", str(folder), "--at", str(told.seq), "-o", "json"]
    assert main(words) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert (found["exactness"], found["choice"]["node"]) == ("exact", told.node)


# --- what goes, and what is not there -------------------------------------------------------------


def recorded(folder: Path, act: Callable[[Simulation], None], config: Any = None) -> None:
    """A journal of what happens in a simulation."""
    with Simulation(keep_attempts=False, seed=1) as sim:
        record = DecisionRecord(sim.clock.now)
        journal = DecisionJournal(folder, sim.scheduler, config)
        journal.start()
        record.add_sink(journal)
        sim.scheduler.ledger = record
        act(sim)
        journal.close()


def two_pods(sim: Simulation) -> None:
    sim.apply(node("a"))
    sim.schedule(pod("p"), pod("q"))


def nodes_and_volumes_that_go(sim: Simulation) -> None:
    disk = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    local = storage_class(provisioner="kubernetes.io/no-provisioner")
    sim.apply(local, claim("data"), volume("here", on="b"))
    sim.apply(node("a", cpu=2), node("b", cpu=4))
    sim.schedule(pod("big", cpu=3), pod("waits", cpu=3))
    sim.delete(node("b"), sim.pod("big"))
    sim.schedule(pod("small", cpu=1))
    sim.delete(volume("here"))
    sim.apply(node("b", cpu=4), pod("db", spec={"volumes": [disk]}))
    sim.advance(20)


def test_nodes_and_objects_that_go_are_gone_in_the_replay(tmp_path: Path) -> None:
    recorded(tmp_path, nodes_and_volumes_that_go)
    told = list(JournalFolder(tmp_path).lines())
    assert [line.no_node for line in told if line.no_node] == ["b"]
    (gone,) = [line.no_object for line in told if line.no_object is not None]
    assert gone == ("PersistentVolume", "", "here")
    found = replayed(tmp_path)
    assert (found.different, found.equal) == (0, found.attempts)
    by_pod = {
        codec.decode(bytes(line.asked), core.Pod).name: line.decide for line in told if line.decide
    }
    small, db = (
        JournalFolder(tmp_path).before(by_pod[name].seq)[0].cluster for name in ("small", "db")
    )
    assert [one.metadata.name for one in small.nodes] == ["a"]
    assert [one.metadata.name for one in db.nodes] == ["a", "b"]
    assert [one.metadata.name for one in small.persistentvolumes] == ["here"]
    assert db.persistentvolumes == ()


def test_a_later_file_does_not_have_what_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "HOUR", 1.0)

    def act(sim: Simulation) -> None:
        sim.apply(node("a"), node("b"), volume("here"), volume("there"))
        sim.schedule(pod("first"))
        sim.delete(node("b"), volume("there"))
        sim.advance(2)
        sim.schedule(pod("second"))

    recorded(tmp_path, act)
    folder = JournalFolder(tmp_path)
    cluster = folder.before(2)[0].cluster
    assert len(folder.files) == 2
    assert [one.metadata.name for one in cluster.nodes] == ["a"]
    assert [one.metadata.name for one in cluster.persistentvolumes] == ["here"]


def test_pods_of_a_scheduler_that_the_configuration_lacks_are_counted(tmp_path: Path) -> None:
    recorded(tmp_path, two_pods)
    other = PACKED.replace("default-scheduler", "another")
    found = replayed(tmp_path, config=other, name="other.yaml")
    assert (found.skipped, found.attempts, found.placed) == (2, 0, 0)


def test_progress_is_told_after_each_attempt(tmp_path: Path) -> None:
    recorded(tmp_path, two_pods)
    seen: list[int] = []
    Replay().run(JournalFolder(tmp_path).lines(), seen.append)
    assert seen == [1, 2]


def test_the_configuration_of_the_journal_decides(tmp_path: Path) -> None:
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "percentageOfNodesToScore": 60}
    config["kind"] = "KubeSchedulerConfiguration"
    recorded(tmp_path / "plain", two_pods, config)
    found = replayed(tmp_path / "plain")
    assert found.notes == ("percentageOfNodesToScore: where the scan began is not in the journal",)
    extender = {"urlPrefix": "http://example.com", "filterVerb": "filter"}
    recorded(tmp_path / "extended", two_pods, {**config, "extenders": [extender]})
    with pytest.raises(ConfigError, match="extenders: a replay can't ask them"):
        replayed(tmp_path / "extended")


# --- files ----------------------------------------------------------------------------------------


def test_only_so_many_files_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "MOST_FILES", 3)
    monkeypatch.setattr(journals, "HOUR", 10.0)

    def act(sim: Simulation) -> None:
        sim.apply(node("a"))
        for hour in range(6):
            sim.schedule(pod(f"p{hour}", cpu="100m"))
            sim.advance(journals.HOUR)

    recorded(tmp_path, act)
    folder = JournalFolder(tmp_path)
    assert len(folder.files) == 3
    found = replayed(tmp_path)
    assert (found.attempts, found.equal) == (3, 3)
    with pytest.raises(ConfigError, match="the journal has no attempt 2"):
        folder.before(2)
    _, asked = folder.before(5)
    assert asked.metadata.name == "p4"


def test_a_later_file_has_the_nominations_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "HOUR", 1.0)

    def act(sim: Simulation) -> None:
        sim.apply(node("a", cpu=2), node("b", cpu=1), pod("dying", cpu=2, on="a", deleting=True))
        sim.schedule(pod("promised", cpu=2, nominated="a", priority=9))
        for number in range(3):
            sim.schedule(pod(f"p{number}", cpu=1))
            sim.advance(2)

    recorded(tmp_path, act)
    folder = JournalFolder(tmp_path)
    assert len(folder.files) > 1
    lines = folder.lines(first_file=len(folder.files) - 1)
    assert any(line.nominated == "a" and line.pods for line in lines)
    assert replayed(tmp_path).different == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"journal": 99}\n', "it is of version 99, and 1 is known"),
        (b"[]\n", "not a line of a journal: Expected `object`, got `array`"),
        (None, "can't be read: Error -3 while decompressing data"),
    ],
)
def test_a_file_that_is_no_journal_is_named(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / f"1-1{journals.SUFFIX}"
    path.write_bytes(b"no gzip" if content is None else gzip.compress(content))
    with pytest.raises(ConfigError) as refused:
        replayed(tmp_path)
    assert str(refused.value).startswith(f"{path}: {words}")

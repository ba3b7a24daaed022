"""Answers from a process of its own, with limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from tests.lens.clusters import cluster_of

from mooring.errors import ConfigError
from mooring.lens.journal import DecisionJournal
from mooring.lens.record import DecisionRecord
from mooring.lens.slices import Busy
from mooring.lens.snapshot import Snapshot
from mooring.lens.worker import MAX_WAITING, LensWorker, PastQuestion
from mooring.lens.writing import encoded
from mooring.simulator import Simulation
from mooring.testing import node, pod

CLUSTER = Snapshot(cluster=cluster_of([node("a", cpu=2), node("b", cpu=1)], [pod("big", cpu=3)]))


async def chunks() -> AsyncGenerator[bytes, None]:
    for chunk in encoded(CLUSTER):
        yield chunk


def ask(question: str, body: bytes = b"", **options: Any) -> Any:
    worker = LensWorker("mooring.cli.lens_worker", **options)
    return json.loads(asyncio.run(worker.ask(question, body, chunks())))


def test_remedies_what_if_and_capacity() -> None:
    async def all_of_them() -> list[Any]:
        worker = LensWorker("mooring.cli.lens_worker")
        manifest = (
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c,"
            " image: x, resources: {requests: {cpu: '1'}}}]}}"
        )
        questions = {
            "remedies default/big": b"",
            "what-if": b'{"addNodes": 1, "like": "a"}',
            "capacity": json.dumps({"pods": manifest}).encode(),
        }
        return [
            json.loads(await worker.ask(question, body, chunks()))
            for question, body in questions.items()
        ]

    remedies, what_if, capacity = asyncio.run(all_of_them())
    assert remedies["remedies"]
    assert what_if["version"] == 1
    assert capacity["version"] == 1


def test_a_past_attempt_is_explained_as_it_was(tmp_path: Path) -> None:
    with Simulation(keep_attempts=False) as sim:
        record = DecisionRecord(sim.clock.now)
        journal = DecisionJournal(tmp_path, sim.scheduler)
        journal.start()
        record.add_sink(journal)
        sim.scheduler.ledger = record
        sim.apply(node("a", cpu=2), pod("big", cpu=3))
        sim.advance(1)
        sim.apply(node("b", cpu=4))  # there is room now, but there was none
        sim.advance(60)
        journal.close()

    async def asked(**changes: Any) -> Any:
        question = PastQuestion(journal=str(tmp_path), since=0, seq=1, pod="default/big")
        body = msgspec.json.encode(structs.replace(question, **changes))
        return json.loads(await LensWorker("mooring.cli.lens_worker").ask("past", body))

    first = asyncio.run(asked(depth="remedies"))
    assert (first["exactness"], first["nodes"], first["feasible"]) == ("exact", 1, 0)
    assert first["remedies"]
    second = asyncio.run(asked(seq=2, depth="matrix"))
    assert (second["choice"]["node"], second["matrix"]["nodes"]) == ("b", ["a", "b"])
    with pytest.raises(ConfigError, match="attempt 1 was made for default/big, not for default/x"):
        asyncio.run(asked(pod="default/x"))
    begun = tmp_path / "begun"  # by a scheduler that has not written yet
    begun.mkdir()
    with pytest.raises(ConfigError, match="the journal has no attempt 1, or not yet"):
        asyncio.run(asked(journal=str(begun)))


def test_a_question_that_is_at_fault_gets_its_sentence() -> None:
    with pytest.raises(ConfigError, match="no such pod"):
        ask("remedies default/absent")


def test_limits_of_time_and_memory() -> None:
    with pytest.raises(ConfigError, match="no answer within 0 seconds"):
        ask("remedies default/big", seconds=0.05)
    with pytest.raises(ConfigError, match="the worker gave no answer"):
        ask("remedies default/big", memory=40 << 20)


def test_questions_are_answered_one_after_the_other() -> None:
    answering: list[int] = []

    async def counted() -> AsyncGenerator[bytes, None]:
        answering.append(1)
        async for chunk in chunks():
            yield chunk
        answering.append(-1)

    async def two() -> Any:
        worker = LensWorker("mooring.cli.lens_worker")
        questions = [worker.ask("remedies default/big", b"", counted()) for _ in range(2)]
        return await asyncio.gather(*questions)

    first, second = asyncio.run(two())
    assert first == second
    assert answering == [1, -1, 1, -1]


def test_a_question_after_too_many_is_refused_and_a_cancelled_one_makes_room() -> None:
    async def asked() -> None:
        worker = LensWorker("mooring.cli.lens_worker")
        waiting = [
            asyncio.ensure_future(worker.ask("remedies default/big", b"", chunks()))
            for _ in range(MAX_WAITING + 1)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="4 questions wait for their answers"):
            await worker.ask("remedies default/big", b"", chunks())
        for one in waiting[:-1]:
            one.cancel()
        assert (await waiting[-1]).startswith(b"{")

    asyncio.run(asked())

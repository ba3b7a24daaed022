"""A process that answers one question about a snapshot or a journal; `lens.worker` starts it.

Not a command: it reads the question and the snapshot from stdin.
"""

from __future__ import annotations

import sys

import msgspec

from mooring.cli.config import registry_with
from mooring.errors import ConfigError, Problem
from mooring.lens.explainer import Explainer, find_pod
from mooring.lens.explanation import plain
from mooring.lens.past import explained_past
from mooring.lens.reading import snapshot_of
from mooring.lens.worker import REFUSED, PastQuestion, WorkerQuestion
from mooring.simulator.imagine import Run
from mooring.simulator.questions import Imagination


def main() -> int:
    line = sys.stdin.buffer.readline()
    asked = msgspec.json.decode(line, type=WorkerQuestion)
    try:
        answer = _answer(asked, sys.stdin.buffer.read())
    except ConfigError as error:
        print(error, file=sys.stderr)
        return REFUSED
    sys.stdout.buffer.write(answer)
    return 0


def _answer(asked: WorkerQuestion, file: bytes) -> bytes:
    kind, _, about = asked.question.partition(" ")
    if kind == "past":
        question = msgspec.json.decode(asked.body, type=PastQuestion)
        return msgspec.json.encode(explained_past(question, registry_with(asked.plugins)))
    snapshot = snapshot_of(file, "the scheduler")
    if kind == "remedies":
        explainer = Explainer(snapshot, registry=registry_with(asked.plugins))
        found = explainer.explain(find_pod(snapshot, about))
        return msgspec.json.encode(plain(found))
    if kind in ("what-if", "capacity"):
        imagination = Imagination(snapshot, base=Run(plugins=asked.plugins))
        ask = imagination.what_if if kind == "what-if" else imagination.capacity
        return msgspec.json.encode(ask(asked.body.encode()))
    raise ConfigError([Problem(asked.question, "there is no such question")])


if __name__ == "__main__":
    sys.exit(main())

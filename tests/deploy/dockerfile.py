"""Reads a Dockerfile: enough of the language for ours."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import msgspec


class Instruction(msgspec.Struct, frozen=True):
    """Such as `RUN`, and what follows it."""

    word: str
    rest: str

    @property
    def words(self) -> list[str]:
        """What follows, as a program would get it."""
        if self.rest.startswith("["):
            return [str(word) for word in json.loads(self.rest)]
        return shlex.split(self.rest)

    @property
    def commands(self) -> list[list[str]]:
        """The commands of a RUN, split at `&&`."""
        return [shlex.split(part) for part in self.rest.split("&&")]


def read(path: Path) -> list[list[Instruction]]:
    """The stages, each beginning with its FROM."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    stages: list[list[Instruction]] = []
    for line in filter(str.strip, joined.splitlines()):
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append(Instruction(word, rest.strip()))
    return stages


def all_of(stage: list[Instruction], word: str) -> list[Instruction]:
    return [instruction for instruction in stage if instruction.word == word]

"""Notes on a configuration: like `Problem`, but not an error."""

from collections.abc import Iterable

import msgspec

from mooring.errors import Problem


class Note(msgspec.Struct, frozen=True, order=True):
    """A change, or a field without a counterpart, with its path in the given file."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class Findings:
    """Collects notes and problems; the caller raises."""

    def __init__(self, place: str = "") -> None:
        self.place = place  # the name of another file, a prefix of every path
        self.notes: list[Note] = []
        self.problems: list[Problem] = []

    def note(self, path: str, text: str) -> None:
        self.notes.append(Note(self._placed(path), text))

    def refuse(self, path: str, message: str) -> None:
        self.problems.append(Problem(self._placed(path), message))

    def refuse_all(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.refuse(problem.path, problem.message)

    def add(self, other: "Findings") -> None:
        """Take over the findings about another file."""
        self.notes += other.notes
        self.problems += other.problems

    def _placed(self, path: str) -> str:
        return ": ".join(part for part in (self.place, path) if part)

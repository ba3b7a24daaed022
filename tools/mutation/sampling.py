"""Which mutants are tried."""

from __future__ import annotations

import ast
import random
import warnings
from collections.abc import Iterator, Mapping

from tools.mutation.finding import Mutant, find


def sample(sources: Mapping[str, bytes], count: int, seed: int) -> list[Mutant]:
    """Up to so many mutants, spread over the files in proportion to their lines."""
    waiting = {file: _shuffled(file, source, seed) for file, source in sources.items()}
    taken: dict[str, list[Mutant]] = {file: [] for file in sources}
    lines = {file: source.count(b"\n") + 1 for file, source in sources.items()}
    while waiting and sum(map(len, taken.values())) < count:
        # The next seat by the method of Sainte-Lague.
        file = max(waiting, key=lambda file: (lines[file] / (2 * len(taken[file]) + 1), file))
        mutant = next(waiting[file], None)
        if mutant is None:
            del waiting[file]
        else:
            taken[file].append(mutant)
    return sorted(
        (mutant for mutants in taken.values() for mutant in mutants),
        key=lambda mutant: (mutant.file, mutant.start, mutant.end, mutant.replacement),
    )


def _shuffled(file: str, source: bytes, seed: int) -> Iterator[Mutant]:
    """The mutants of a file that compile and are not the same program."""
    mutants = find(file, source)
    random.Random(f"{seed} {file}").shuffle(mutants)
    seen = {_program(source)}
    for mutant in mutants:
        program = _program(mutant.apply(source))
        if program and program not in seen:
            seen.add(program)
            yield mutant


def _program(source: bytes) -> str:
    """The syntax tree as text; empty if it does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
            compile(tree, "mutant", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return ""
    return ast.dump(tree)

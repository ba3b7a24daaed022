"""Prints random scenarios: `python -m tests.oracle.generate --n 2000 --seed 7 [--family F]`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from tests.oracle.scenarios.dice import Object
from tests.oracle.scenarios.families import FAMILIES, Numbered


def generate(count: int, seed: int, family: str | None = None) -> Iterator[Object]:
    """The scenarios of a seed; all families in turn, or only the one named."""
    numbered = Numbered(seed, (family,) if family else tuple(FAMILIES))
    return (numbered.scenario(number) for number in range(count))


def line(scenario: Object) -> str:
    return json.dumps(scenario, separators=(",", ":"))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100, help="how many (default 100)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--family", choices=list(FAMILIES), help="default: all in turn")
    options = parser.parse_args(arguments)
    for scenario in generate(options.n, options.seed, options.family):
        sys.stdout.write(line(scenario) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

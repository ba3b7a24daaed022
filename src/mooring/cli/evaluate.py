"""`mooring evaluate`: would these pods fit, where, and why, in bulk and for scripts."""

from __future__ import annotations

import gc
import gzip
import sys
from collections.abc import Iterator, Sequence

import msgspec

from mooring import config as cfg
from mooring.cli.config import print_problems, registry_with
from mooring.errors import ConfigError
from mooring.simulator.evaluate import Evaluator

_PROGRESS_EVERY = 500


def evaluate(files: Sequence[str], config_file: str | None, plugins: Sequence[str]) -> int:
    """One line of JSON per scenario; 1 if a file or a scenario could not be read."""
    try:
        config = cfg.load_file(config_file) if config_file else None
        evaluator = Evaluator(config, registry=registry_with(plugins))
    except ConfigError as error:
        return print_problems(error, config_file or "configuration")
    # Each scenario leaves a few cycles behind; looking for them all the time costs a tenth.
    gc.freeze()
    gc.set_threshold(50_000)
    answered = failed = 0
    encoder = msgspec.json.Encoder()
    for file in files or ["-"]:
        name = "<stdin>" if file == "-" else file
        try:
            for result in evaluator.lines(_lines(file)):
                failed += "error" in result
                answered += 1
                sys.stdout.buffer.write(encoder.encode(result) + b"\n")
                if answered % _PROGRESS_EVERY == 0 and sys.stderr.isatty():
                    print(f"\r{answered} scenarios", end="", file=sys.stderr)
        except (OSError, EOFError) as error:
            failed += 1
            print(f"{name}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        sys.stdout.flush()
    if sys.stderr.isatty():
        print(f"\r{answered} scenarios, {failed} not answered", file=sys.stderr)
    return 1 if failed else 0


def _lines(file: str) -> Iterator[bytes]:
    if file == "-":
        yield from sys.stdin.buffer
        return
    with gzip.open(file) if file.endswith(".gz") else open(file, "rb") as source:
        yield from source

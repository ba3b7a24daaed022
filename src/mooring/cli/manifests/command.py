"""`mooring manifests`, from parsed options to exit code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mooring import __version__
from mooring.cli.config import print_problems
from mooring.cli.manifests.rights import Object, rights
from mooring.cli.manifests.wanted import Wanted, want
from mooring.cli.manifests.workload import workload
from mooring.cli.manifests.writing import file_stem, to_json, to_yaml, write_files
from mooring.errors import ConfigError


def run(options: argparse.Namespace) -> int:
    """Print the objects, or write them to where it was asked for."""
    name = "<stdin>" if options.config == "-" else options.config
    try:
        wanted = want(
            name=options.name,
            namespace=options.namespace,
            file=options.config,
            image=options.image,
            replicas=options.replicas,
            priority_class=options.priority_class,
            plugins=options.plugin,
        )
    except ConfigError as error:
        return print_problems(error, name or "mooring manifests")
    for note in wanted.notes:
        print(f"note: {note}", file=sys.stderr)
    return _deliver(wanted, options)


def objects(wanted: Wanted) -> list[Object]:
    """Everything that has to be in the cluster, in the order in which it makes sense to read."""
    return [*rights(wanted), *workload(wanted)]


def _deliver(wanted: Wanted, options: argparse.Namespace) -> int:
    made, target = objects(wanted), options.write_to
    if not target:
        print(_written(wanted, made, options.output), end="")
        return 0
    try:
        if target.endswith("/") or Path(target).is_dir():
            files = {
                f"{file_stem(value, wanted.name)}.{options.output}": _written(
                    wanted, [value], options.output
                )
                for value in made
            }
            write_files(Path(target), files)
        else:
            Path(target).write_text(_written(wanted, made, options.output), encoding="utf-8")
    except OSError as error:
        print(f"{target}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"wrote {len(made)} objects to {target}")
    return 0


def _written(wanted: Wanted, made: list[Object], output: str) -> str:
    if output == "json":
        return to_json(made)
    return to_yaml(made, f"The scheduler {wanted.name}, by mooring manifests {__version__}.")

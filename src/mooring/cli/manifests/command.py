"""`mooring manifests`, from parsed options to exit code."""

from __future__ import annotations

import sys
from pathlib import Path

from mooring import __version__
from mooring.cli.config import print_problems
from mooring.cli.manifests.options import ManifestOptions, Release, plan_release
from mooring.cli.manifests.rbac_objects import Object, rbac_objects
from mooring.cli.manifests.workload import workload
from mooring.cli.manifests.writing import file_stem, to_json, to_yaml, write_files
from mooring.errors import ConfigError


def run(options: ManifestOptions) -> int:
    """Print the objects, or write them to `--write-to`."""
    try:
        release = plan_release(options)
    except ConfigError as error:
        return print_problems(error, "mooring manifests")
    for note in release.notes:
        print(f"note: {note}", file=sys.stderr)
    return _deliver(release, options)


def objects(release: Release) -> list[Object]:
    """All objects, RBAC first."""
    return [*rbac_objects(release), *workload(release)]


def _deliver(release: Release, options: ManifestOptions) -> int:
    made, target = objects(release), options.write_to
    if not target:
        print(_written(release, made, options.output), end="")
        return 0
    try:
        if target.endswith("/") or Path(target).is_dir():
            files = {
                f"{file_stem(value, release.name)}.{options.output}": _written(
                    release, [value], options.output
                )
                for value in made
            }
            write_files(Path(target), files)
        else:
            Path(target).write_text(_written(release, made, options.output), encoding="utf-8")
    except OSError as error:
        print(f"{target}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"wrote {len(made)} objects to {target}")
    return 0


def _written(release: Release, made: list[Object], output: str) -> str:
    if output == "json":
        return to_json(made)
    return to_yaml(made, f"The scheduler {release.name}, by mooring manifests {__version__}.")

"""`mooring explain`: why a pod is pending or where it is, and what would make it fit."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import structs
from rich.console import Console

from mooring import config as cfg
from mooring.api import core
from mooring.cli.config import read_configuration, registry_with
from mooring.cli.sources import SourceOptions, ask_scheduler, load, reported
from mooring.config.source import dump_yaml
from mooring.errors import ConfigError, Problem, UsageError
from mooring.lens import explanation as told
from mooring.lens.explainer import Explainer, find_pod
from mooring.lens.explanation import Explanation, plain
from mooring.lens.journal_reading import JournalFolder
from mooring.lens.matrix import as_csv
from mooring.lens.rendering import show
from mooring.lens.slices import STANDING_BY
from mooring.lens.snapshot import QueuedState, Snapshot
from mooring.runtime.registry import Registry

FITS_NOWHERE = 3  # an exit code


class _Replica(msgspec.Struct):
    leader: bool


class _LiveAnswer(msgspec.Struct):
    """Of an answer of /lens/v1/, what a snapshot does not have."""

    replica: _Replica
    queue: QueuedState | None = None


class ExplainOptions(SourceOptions, frozen=True, kw_only=True):
    """What `mooring explain` understands."""

    pod: str
    namespace: str
    node: Sequence[str]
    config: str | None
    plugin: Sequence[str]
    output: str
    no_remedies: bool
    matrix: str
    watch: float | None
    at: int | None


@reported
def run(options: ExplainOptions) -> int:
    """Explain one pod; 3 if it fits nowhere, 1 if it can't be told."""
    registry = registry_with(options.plugin)
    config = read_configuration(options.config).config if options.config else None
    if options.watch is not None:
        if options.at is not None:
            text = "the past does not change: expected no --watch beside it"
            raise UsageError([Problem("--at", text)])
        return _watch(options, config, registry)
    if options.at is not None:
        snapshot, _ = JournalFolder(Path(options.source)).before(options.at)
    else:
        snapshot = load(options, quiet=True)  # what matters is in the notes
    explainer = Explainer(snapshot, config, registry)
    pod = find_pod(snapshot, options.pod, options.namespace)
    found = explainer.explain(pod, ask=options.node, remedies=not options.no_remedies)
    if options.is_scheduler:
        found = _with_queue(options, pod, found)
    if options.matrix:
        _write(options.matrix, as_csv(explainer.evaluation_of(pod)))
    if options.matrix != "-":
        _print(found, options.output)
    return _exit_code(found)


def _watch(
    options: ExplainOptions, config: cfg.KubeSchedulerConfiguration | None, registry: Registry
) -> int:
    """Explain again and again until the pod has a node; print what is new."""
    assert options.watch is not None
    if os.path.exists(options.source):
        raise UsageError([Problem("--watch", "a file does not change; name a cluster")])
    before: Explanation | None = None
    while True:
        snapshot: Snapshot = load(options, quiet=True)
        pod = find_pod(snapshot, options.pod, options.namespace)
        found = Explainer(snapshot, config, registry).explain(
            pod, ask=options.node, remedies=not options.no_remedies
        )
        if found != before:
            if before is not None and options.output == "table":
                print(time.strftime("--- %H:%M:%S"))
            _print(found, options.output)
            before = found
        if found.node:
            return _exit_code(found)
        time.sleep(options.watch)


def _with_queue(options: ExplainOptions, pod: core.Pod, found: Explanation) -> Explanation:
    """With all that the queue of a running scheduler knows of the pod: a snapshot has less."""
    path = f"/lens/v1/pods/{quote(pod.metadata.namespace)}/{quote(pod.metadata.name)}/explain"
    path += "?preemption=false"  # which is computed here
    try:
        answer = msgspec.json.decode(ask_scheduler(options, path), type=_LiveAnswer)
    except ConfigError as error:  # it has ended meanwhile, or too many ask
        note = f"what the queue knows is that of the snapshot: {error}"
        return structs.replace(found, notes=(*found.notes, note))
    notes = () if answer.replica.leader else (STANDING_BY,)
    return structs.replace(found, queue=answer.queue, notes=(*found.notes, *notes))


def _exit_code(found: Explanation) -> int:
    if found.kind == told.ERROR:
        return 1
    return 0 if found.feasible or found.node else FITS_NOWHERE


def _print(found: Explanation, output: str) -> None:
    if output == "json":
        sys.stdout.write(told.as_json(found))
    elif output == "yaml":
        sys.stdout.write(dump_yaml(plain(found)))
    else:
        show(found, Console(highlight=False, soft_wrap=False))
    sys.stdout.flush()


def _write(file: str, text: str) -> None:
    if file == "-":
        sys.stdout.write(text)
        return
    try:
        with open(file, "w", encoding="utf-8", newline="") as out:
            out.write(text)
    except OSError as error:
        raise ConfigError([Problem(file, error.strerror or str(error))]) from error

"""The flags of `mooring snapshot`, `what-if`, `capacity` and `compare`; `--help` is instant."""

from __future__ import annotations

import argparse

from mooring.cli.run.flags import add_kubeconfig, add_plugin_flag, whole_number
from mooring.cli.source_flags import add_scheduler_access, add_source_flags

SOURCE = "FILE|cluster|URL"
_jobs = whole_number(0, 1024)
_seed = whole_number(0, 2**31)


def add_snapshot_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring snapshot` understands."""
    add_source_flags(parser)
    add = parser.add_argument_group("what is written").add_argument
    add("-o", "--output", required=True, metavar="FILE", help="NAME.snap.gz; - is standard output")
    add(
        "--format",
        choices=("snapshot", "simulator", "yaml"),
        default="",
        help="ours (.snap.gz), what kube-scheduler-simulator imports (.json), or objects for"
        " kubectl and kwokctl (.yaml); by the name of the file if not given",
    )
    add(
        "--redact",
        default="",
        metavar="PARTS",
        help="replace names, labels, images, or all by pseudonyms; several by commas",
    )
    add(
        "--key-file",
        default="",
        metavar="FILE",
        help="a secret under which equal names are equal in several files (default: thrown away)",
    )


def add_what_if_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring what-if` understands."""
    _add_source(parser)
    changes = parser.add_argument_group("what is done; nothing is written to the cluster")
    nodes = {"nargs": "+", "action": "extend", "default": [], "metavar": "NODE"}
    add = changes.add_argument
    add("--drain", help="evict the pods of these nodes; gpu-* is a pattern", **nodes)  # type: ignore[arg-type]  # a table of options
    add("--cordon", help="let no further pod onto these nodes", **nodes)  # type: ignore[arg-type]
    add("--remove-nodes", help="lose these nodes at once", **nodes)  # type: ignore[arg-type]
    add("--add-nodes", default="", metavar="N", help="this many; 0..5 tries each number")
    add("--like", default="", metavar="NODE|FILE", help="a node whose shape the added ones have")
    add(
        "--scale",
        action="append",
        default=[],
        metavar="[NAMESPACE/]KIND/NAME=N",
        help="such as deploy/web=50; may be repeated",
    )
    add(
        "--apply",
        action="append",
        default=[],
        metavar="FILE",
        help="create or replace the objects of this file; may be repeated",
    )
    _add_scheduler(parser)
    _add_sweep(parser)
    _add_output(parser)


def add_capacity_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring capacity` understands."""
    _add_source(parser)
    add = parser.add_argument
    add(
        "pods",
        nargs="+",
        metavar="POD.yaml",
        help="manifests of the pods that are to fit; a Deployment counts as its pod",
    )
    add("--mix", default="", metavar="3:1", help="proportions, if there are several (1:1)")
    add("--max", type=whole_number(1, 10**9), metavar="N", help="stop at so many")
    add(
        "--no-gains",
        action="store_true",
        help="don't work out what one more of each resource would bring",
    )
    _add_scheduler(parser, several=False)
    add("--seed", type=_seed, default=0, metavar="N", help="of everything random (0)")
    _add_output(parser)


def add_compare_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring compare` understands."""
    _add_source(parser)
    parser.add_argument(
        "configs",
        nargs="+",
        metavar="CONFIG",
        help="KubeSchedulerConfigurations: the first is compared with each other one; one alone is"
        " compared with that of the snapshot, or the default",
    )
    group = parser.add_argument_group("the scheduler")
    add_plugin_flag(group)
    _add_reschedule(group)
    _add_sweep(parser)
    _add_output(parser)


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar=SOURCE,
        help="a snapshot or a dump of objects, the word cluster for the cluster of the"
        " kubeconfig, or the address of a running scheduler",
    )
    add_kubeconfig(parser.add_argument_group("which cluster"))
    add_scheduler_access(parser)


def _add_scheduler(parser: argparse.ArgumentParser, *, several: bool = True) -> None:
    group = parser.add_argument_group("the scheduler")
    group.add_argument(
        "--config",
        dest="configs",
        action="append",
        default=[],
        metavar="FILE",
        help="another KubeSchedulerConfiguration than that of the snapshot, or the default"
        + ("; may be repeated" if several else ""),
    )
    add_plugin_flag(group)
    if several:
        _add_reschedule(group)


def _add_reschedule(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--reschedule",
        action="store_true",
        help="place all pods anew, also those that have a node",
    )


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("many runs at once").add_argument
    add("--also", action="append", default=[], metavar=SOURCE, help="a further cluster; repeatable")
    add(
        "--seed",
        type=_seed,
        nargs="+",
        default=[0],
        metavar="N",
        help="of everything random (0); each of several is a run",
    )
    add("--jobs", type=_jobs, default=0, metavar="N", help="processes (default: one per CPU)")
    add("--dask", default="", metavar="ADDRESS", help="of a Dask scheduler to run on instead")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml"),
        default="table",
        help="table (default), or the answer as data",
    )

"""The flags of `mooring cluster up`. Only the shape is checked here; `--help` is instant."""

from __future__ import annotations

import argparse

from mooring.cli.run.flags import add_kubeconfig, add_plugin_flag, whole_number

_count = whole_number(0, 65_536)
_zones = whole_number(0, 26)  # one letter each
_port = whole_number(0, 65535)


def add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring cluster up` understands."""
    _add_nodes(parser.add_argument_group("nodes"))
    _add_access(parser.add_argument_group("how to reach it"))
    _add_content(parser.add_argument_group("what is in it"))
    _add_scheduler(parser.add_argument_group("a scheduler in the same process"))
    parser.add_argument(
        "-v", "--v", type=int, default=0, metavar="LEVEL", help="verbosity of logs, 0 to 10"
    )


def _add_nodes(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--nodes",
        type=_count,
        default=-1,
        metavar="N",
        help="how many; they are the pool `node` (10, or none beside other pools)",
    )
    add("--node-cpu", default="8", metavar="CPU", help="of each (8)")
    add("--node-memory", default="32Gi", metavar="BYTES", help="of each (32Gi)")
    add("--node-pods", type=_count, default=110, metavar="N", help="that fit on each (110)")
    add("--zones", type=_zones, default=3, metavar="N", help="zone-a, zone-b, …: 0 to 26 (3)")
    add("--gpus", type=_count, default=0, metavar="N", help="nvidia.com/gpu on each node (0)")
    add(
        "--pool",
        action="append",
        default=[],
        metavar="NAME:N,KEY=VALUE,…",
        help="a pool of N nodes, such as gpu:4,cpu=64,memory=256Gi,nvidia.com/gpu=8,label.k=v,"
        "taint=k=v:NoSchedule,zone=a; may be repeated",
    )
    add("--pools", default="", metavar="FILE", help="pools from a YAML file")
    add(
        "--job-duration",
        default="10s",
        metavar="DURATION",
        help="of pods of Jobs without the annotation mooring.dev/duration (10s)",
    )
    add("--no-kubelets", action="store_true", help="pods are not started once they are bound")


def _add_access(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--kubeconfig", default="", metavar="FILE", help="write it there (a temporary folder)")
    add("--force", action="store_true", help="overwrite the file even if it is not ours")
    add("--address", default="127.0.0.1", metavar="IP", help="listen there (127.0.0.1)")
    add("--expose", action="store_true", help="allow addresses that others can reach")
    add("--port", type=_port, default=0, metavar="PORT", help="and there; 0 is a free one (0)")


def _add_content(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--data", default="", metavar="FILE", help="keep everything in this SQLite file")
    add(
        "--apply",
        action="append",
        default=[],
        metavar="FILE",
        help="create the objects of this YAML file; may be repeated",
    )


def _add_scheduler(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--scheduler",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="schedule pods, and say where each one went (--no-scheduler)",
    )
    add("--config", default="", metavar="FILE", help="its KubeSchedulerConfiguration")
    add_plugin_flag(group)


def add_scale_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring cluster scale` understands."""
    parser.add_argument(
        "sizes", nargs="+", metavar="POOL=N", help="the pool and its number of nodes, such as gpu=6"
    )
    add_kubeconfig(parser.add_argument_group("which cluster"))

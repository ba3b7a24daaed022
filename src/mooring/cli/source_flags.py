"""The flags that say which cluster a command is about; `sources` reads it."""

from __future__ import annotations

import argparse

from mooring.cli.run.flags import add_kubeconfig


def add_source_flags(parser: argparse.ArgumentParser) -> None:
    """`--from`, `--kubeconfig` and `--context`."""
    group = parser.add_argument_group("which cluster")
    group.add_argument(
        "--from",
        dest="source",
        default="cluster",
        metavar="FILE|cluster|URL",
        help="a snapshot or a dump of objects, the cluster of the kubeconfig (default), or the"
        " address of a running scheduler",
    )
    add_kubeconfig(group)

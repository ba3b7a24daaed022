"""The flags of `mooring ui`."""

from __future__ import annotations

import argparse

from mooring.cli.run import flags
from mooring.cli.source_flags import add_scheduler_access


def add_ui_flags(parser: argparse.ArgumentParser) -> None:
    """What is shown, and how."""
    add = parser.add_argument
    add(
        "source",
        nargs="?",
        default="cluster",
        metavar="FILE|cluster|URL",
        help="a snapshot or a dump of objects, the cluster of the kubeconfig as it is now"
        " (default), or the address of a running scheduler, which is followed live",
    )
    add(
        "--html",
        default="",
        metavar="OUT",
        help="write page and data into one file, which needs no server, instead of serving it",
    )
    add("--port", type=flags.whole_number(0, 65535), default=0, help="default: a free one")
    add(
        "--no-browser",
        dest="browser",
        action="store_false",
        help="print the address and do not open it",
    )
    add(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        help="of a running scheduler: for readers of one namespace",
    )
    add("--config", metavar="FILE", help="what the scheduler of the pods runs with")
    flags.add_plugin_flag(parser)
    flags.add_kubeconfig(parser.add_argument_group("which cluster"))
    add_scheduler_access(parser)

"""The flags of `mooring controller`: those of `mooring run` that any process has."""

from __future__ import annotations

import argparse

from mooring.cli.run import flags


def add_controller_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring controller` understands."""
    parser.add_argument(
        "controller", metavar="MODULE:NAME", help="a function under @mooring.controller.controller"
    )
    group = parser.add_argument_group("which cluster")
    flags.add_connection(group)
    group.add_argument(
        "--workers",
        type=flags.whole_number(1, 1000),
        default=16,
        metavar="N",
        help="pods that are bound at once (16)",
    )
    flags.add_manners(parser.add_argument_group("beside other schedulers"))
    flags.add_leader_election(parser.add_argument_group("leader election"))
    flags.add_serving(parser.add_argument_group("endpoints"))
    flags.add_access(parser.add_argument_group("who may read /metrics"))
    flags.add_logs(parser.add_argument_group("logs"))
    parser.set_defaults(leader_elect=False)  # most controllers start with one replica

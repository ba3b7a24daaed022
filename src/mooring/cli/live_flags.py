"""The flags of `mooring records`, `replay`, `top` and `queue`; `--help` is instant."""

from __future__ import annotations

import argparse

from mooring.cli.run.flags import add_kubeconfig, add_plugin_flag, interval, whole_number
from mooring.cli.source_flags import add_scheduler_access

_limit = whole_number(1, 1_000)
_many = whole_number(0, 10**9)
_OUTCOMES = ("scheduled", "unschedulable", "nominated", "error")
_PLACES = ("active", "backoff", "unschedulable", "gated", "waiting", "in flight", "binding")


def add_records_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring records` understands."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="of `mooring run --record-file`, the oldest first")
    add("--pod", default="", metavar="[NAMESPACE/]NAME", help="only attempts of this pod")
    add("--outcome", choices=_OUTCOMES, default="", help="only these")
    add("--since", default="", metavar="TIME", help="only later ones, e.g. 2026-05-01T12:00:00Z")
    add("--limit", type=_many, default=0, metavar="N", help="the last N (50, all of an export)")
    add(
        "--export",
        choices=("parquet", "perfetto", "otlp", "csv"),
        default="",
        help="for other programs; parquet needs mooring[records]",
    )
    add("-o", "--output", default="", metavar="FILE|json", help="of an export; json: not a table")


def add_top_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring top` understands."""
    _add_live(parser)


def add_queue_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring queue` understands."""
    add = parser.add_argument
    add("--place", choices=_PLACES, default="", help="only pods that are there")
    add("-n", "--namespace", default="", metavar="NAME", help="for readers of one namespace")
    add("--limit", type=_limit, default=0, metavar="N", help="at most so many pods (1000)")
    _add_live(parser)


def add_replay_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring replay` understands."""
    add = parser.add_argument
    add("journal", metavar="DIR", help="of `mooring run --record-journal`")
    add("--config", metavar="FILE", default="", help="another configuration than the recorded one")
    add_plugin_flag(parser)
    add("-o", "--output", choices=("table", "json"), default="table", help="default: for people")
    add("--limit", type=_limit, default=20, metavar="20", help="differences to show, at most 1000")


def _add_live(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--once", action="store_true", help="look once; also if it is no terminal")
    add("-o", "--output", choices=("table", "json"), default="table", help="json: look once")
    add("--interval", type=interval, default=2.0, metavar="2", help="seconds between two looks")
    group = parser.add_argument_group("which scheduler")
    group.add_argument(
        "--from",
        dest="source",
        default="cluster",
        metavar="URL",
        help="address of a running scheduler, https://HOST:10259; by default that of the"
        " kubeconfig, which is a cluster of `mooring cluster up`",
    )
    add_kubeconfig(group)
    add_scheduler_access(parser)

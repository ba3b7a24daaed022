"""The flags of `mooring extender`."""

from __future__ import annotations

import argparse

from mooring.cli.run.flags import add_kubeconfig, add_logs, duration


def add_extender_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring extender` understands."""
    parser.add_argument(
        "extender",
        nargs="?",
        default="",
        metavar="MODULE:NAME",
        help="functions under a mooring.extender.Extender, or a plugin class",
    )
    _add_main(parser.add_argument_group("what to serve"))
    _add_cluster(parser.add_argument_group("the cluster to watch"))
    _add_serving(parser.add_argument_group("endpoints and access"))
    add_logs(parser.add_argument_group("logs"))


def _add_main(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="serve a plugin class at all points that a verb carries; may be repeated",
    )
    add(
        "--config",
        default="",
        metavar="FILE",
        help="KubeSchedulerConfiguration: its pluginConfig has arguments, and what its profile"
        " enables is served too",
    )
    add(
        "--serve-bind",
        action="store_true",
        help="serve /bind even without a Bind plugin: create the Binding",
    )
    add(
        "--plugin-timeout",
        type=duration,
        default="4s",
        metavar="4s",
        help="for all nodes of a request; less than the httpTimeout of the scheduler, which is 5s",
    )


def _add_cluster(group: argparse._ArgumentGroup) -> None:
    add_kubeconfig(group)
    group.add_argument(
        "--no-cluster",
        action="store_true",
        help="watch nothing: nodes are as requests describe them; of names, names are all there is",
    )


def _add_serving(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--bind-address",
        default="127.0.0.1",
        metavar="IP",
        help="listen here (127.0.0.1; in a pod behind a Service say 0.0.0.0)",
    )
    add("--port", type=int, default=8888, metavar="PORT", help="8888; 0: any that is free")
    add("--tls-cert-file", default="", metavar="FILE", help="serving certificate, reloaded")
    add("--tls-private-key-file", default="", metavar="FILE", help="its key")
    add(
        "--client-ca-file",
        default="",
        metavar="FILE",
        help="CA of client certificates; then everything but health needs one",
    )
    add(
        "--client-names",
        default="",
        metavar="NAMES",
        help="common names of clients that may ask, by commas (all that the authority has signed)",
    )
    add(
        "--max-body-bytes",
        type=int,
        default=32 * 1024 * 1024,
        metavar="N",
        help="larger requests get 413 (33554432); 5,000 whole nodes may need more",
    )

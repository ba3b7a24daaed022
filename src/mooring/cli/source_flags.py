"""The flags that say which cluster a command is about; `sources` reads it."""

from __future__ import annotations

import argparse

from mooring.cli.run.flags import add_kubeconfig


def add_source_flags(parser: argparse.ArgumentParser) -> None:
    """`--from`, `--kubeconfig` and `--context`, and those of `add_scheduler_access`."""
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
    add_scheduler_access(parser)


def add_scheduler_access(parser: argparse.ArgumentParser) -> None:
    """How to be let in by a running scheduler: the flags that kubectl has."""
    add = parser.add_argument_group("a running scheduler").add_argument
    add("--token", default="", help="bearer token for it")
    add("--client-certificate", default="", metavar="FILE", help="certificate for it")
    add("--client-key", default="", metavar="FILE", help="key of that certificate")
    add("--certificate-authority", default="", metavar="FILE", help="that signed its certificate")
    add(
        "--insecure-skip-tls-verify",
        action="store_true",
        help="do not verify its certificate: by default it is self-signed",
    )

"""The flags of `mooring run`: kube-scheduler's names where the meaning is equal, and a few of ours.

Only the shape of each value is checked here; `settings` checks them together.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mooring.config.duration import Duration

# Accepted so that a command line written for kube-scheduler starts; they have no effect.
IGNORED: Final[tuple[str, ...]] = (
    "--contention-profiling",
    "--disable-http2-serving",
    "--http2-max-streams-per-connection",
    "--kube-api-content-type",
    "--leader-elect-resource-lock",
    "--log-flush-frequency",
    "--permit-address-sharing",
    "--permit-port-sharing",
    "--profiling",
    "--show-hidden-metrics-for-version",
    "--vmodule",
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Everything `mooring run` understands."""
    _add_main(parser.add_argument_group("what to run"))
    manners = parser.add_argument_group("beside other schedulers")
    add_manners(manners)
    manners.add_argument(
        "--check-decisions",
        type=_share,
        default=0.0,
        metavar="0",
        help="share of decisions, 0 to 1, to make a second time the long way and compare",
    )
    manners.add_argument(
        "--shadow",
        action="store_true",
        help="compare another scheduler's decisions with those made here; write nothing",
    )
    manners.add_argument(
        "--shadow-report",
        metavar="FILE",
        default="",
        help="with --shadow: append each difference as a line of JSON",
    )
    _add_record(parser.add_argument_group("record of decisions"))
    add_leader_election(parser.add_argument_group("leader election (overrides the file)"))
    add_serving(parser.add_argument_group("endpoints"))
    add_access(parser.add_argument_group("access to /metrics, /configz and /lens"))
    add_logs(parser.add_argument_group("logs"))
    for flag in IGNORED:
        parser.add_argument(
            flag, nargs="?", action=_Ignored, dest="ignored", default=[], help=argparse.SUPPRESS
        )


class _Ignored(argparse.Action):
    """Records the flag, not its value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        namespace.ignored = [*namespace.ignored, self.option_strings[0]]


def _add_main(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--config", metavar="FILE", default="", help="KubeSchedulerConfiguration to run with")
    add_connection(group)
    add_plugin_flag(group)
    _add_reload(group)
    add("--write-config-to", metavar="FILE", default="", help="write the full configuration, exit")
    add(
        "--feature-gates",
        action="append",
        default=[],
        metavar="NAME=BOOL,…",
        help="accepted for gates that stand as asked; see docs/reference/flags.md",
    )
    add(
        "--on-overrun",
        action="append",
        default=[],
        metavar="PLUGIN=fail|skip|isolate",
        help="what follows when a plugin takes too long (fail); * for all; may be repeated",
    )
    add(
        "--pod-max-in-unschedulable-pods-duration",
        type=duration,
        default="5m",
        metavar="5m0s",
        help="try a refused pod again after this time, whatever happened",
    )


def _add_reload(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--reload",
        action="store_true",
        help="development: take changed plugin files and configuration at once",
    )
    # Makes all that a start makes before it connects, and exits: what `--reload` tries first.
    group.add_argument("--check-start", action="store_true", help=argparse.SUPPRESS)


def _add_record(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--record-size",
        type=_size,
        default=100_000,
        metavar="100000",
        help="attempts kept in memory, for /lens/v1; 0: none",
    )
    _add_bool(group, "--record-margins", False, "record the runner-up and its distance, too")
    add("--record-file", metavar="FILE", default="", help="keep the record in this SQLite file")
    add(
        "--record-file-limit",
        type=_bytes,
        default="1Gi",
        metavar="1Gi",
        help="size of that file and the one before it, FILE.1",
    )
    add(
        "--record-journal",
        metavar="DIR",
        default="",
        help="keep every change and decision in this folder, for `mooring replay`",
    )
    add(
        "--record-otlp",
        metavar="URL",
        default="",
        help="send traces of attempts to this OpenTelemetry collector (OTLP over HTTP, JSON)",
    )
    add(
        "--record-otlp-share",
        type=_share,
        default=0.01,
        metavar="0.01",
        help="share of the attempts, besides those that are slow or fail by an error",
    )
    add(
        "--lens-workers",
        type=int,
        choices=(0, 1),
        default=1,
        help="processes for answers of /lens/v1 that take longer than a moment (1)",
    )


def add_plugin_flag(parser: argparse._ActionsContainer) -> None:
    """`--plugin module:Class`, for commands that read a configuration."""
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="make a plugin class known by its name; may be repeated",
    )


def add_kubeconfig(group: argparse._ArgumentGroup) -> None:
    """Which API server."""
    add = group.add_argument
    add("--kubeconfig", metavar="FILE", default="", help="how to reach the API server")
    add("--context", metavar="NAME", default="", help="context of the kubeconfig (current one)")


def add_connection(group: argparse._ArgumentGroup) -> None:
    """Which API server, and the rate of requests."""
    add_kubeconfig(group)
    add = group.add_argument
    add("--master", metavar="URL", default="", help="address of the API server, over kubeconfig's")
    add("--kube-api-qps", type=float, metavar="N", help="requests a second (file, or 50)")
    add("--kube-api-burst", type=int, metavar="N", help="requests at once (file, or 100)")


def add_manners(group: argparse._ArgumentGroup) -> None:
    """Limits that matter beside other schedulers."""
    add = group.add_argument
    add(
        "--node-selector",
        metavar="LABELS",
        default="",
        help="schedule only onto nodes with these labels, e.g. pool=gpu or 'pool in (a,b)'",
    )
    add(
        "--shutdown-grace-period",
        type=duration,
        default="20s",
        metavar="20s",
        help="time for bindings under way to end after SIGTERM",
    )
    add(
        "--permission-check-interval",
        type=duration,
        default="1m",
        metavar="1m",
        help="how often to ask whether all rights are there",
    )


def add_leader_election(group: argparse._ArgumentGroup) -> None:
    """Whether and how replicas elect a leader."""
    add = group.add_argument
    _add_bool(group, "--leader-elect", None, "elect a leader among the replicas")
    add("--leader-elect-lease-duration", type=duration, metavar="15s", help="of a lease")
    add("--leader-elect-renew-deadline", type=duration, metavar="10s", help="to renew it")
    add("--leader-elect-retry-period", type=duration, metavar="2s", help="between tries")
    add("--leader-elect-resource-name", metavar="NAME", help="the lease (first schedulerName)")
    add("--leader-elect-resource-namespace", metavar="NAMESPACE", help="its namespace")


def add_serving(group: argparse._ArgumentGroup) -> None:
    """Where the endpoints listen."""
    add = group.add_argument
    add("--bind-address", metavar="IP", default="0.0.0.0", help="listen here (0.0.0.0)")
    add("--secure-port", type=int, metavar="PORT", default=10259, help="10259; 0: no endpoints")
    add("--tls-cert-file", metavar="FILE", default="", help="serving certificate, reloaded")
    add("--tls-private-key-file", metavar="FILE", default="", help="its key")
    add("--cert-dir", metavar="DIR", default="", help="where to keep a self-signed certificate")
    add("--tls-min-version", metavar="VersionTLS12", default="", help="VersionTLS12 or 13")
    add("--tls-cipher-suites", metavar="NAMES", default="", help="for TLS 1.2, by commas")


def add_access(group: argparse._ArgumentGroup) -> None:
    """Authentication and authorisation at the endpoints."""
    add = group.add_argument
    add("--authentication-kubeconfig", metavar="FILE", default="", help="to ask about tokens")
    _add_bool(group, "--authentication-skip-lookup", False, "do not look up the client CA")
    _add_bool(
        group, "--authentication-tolerate-lookup-failure", True, "start without the client CA"
    )
    ttl: dict[str, Any] = {"type": duration, "default": "10s", "metavar": "10s"}
    add("--authentication-token-webhook-cache-ttl", help="how long an answer holds", **ttl)
    add("--authorization-kubeconfig", metavar="FILE", default="", help="to ask about rights")
    add("--authorization-webhook-cache-authorized-ttl", help="how long a yes holds", **ttl)
    add("--authorization-webhook-cache-unauthorized-ttl", help="how long a no holds", **ttl)
    add(
        "--authorization-always-allow-paths",
        metavar="PATHS",
        default="/healthz,/readyz,/livez",
        help="open to all callers",
    )
    add("--client-ca-file", metavar="FILE", default="", help="CA of client certificates")


def add_logs(group: argparse._ArgumentGroup) -> None:
    """Verbosity and format."""
    add = group.add_argument
    add("-v", "--v", type=int, default=0, metavar="LEVEL", help="verbosity, 0 to 10")
    add("--logging-format", choices=("text", "json"), default="text")


def _add_bool(group: argparse._ArgumentGroup, flag: str, default: bool | None, help_: str) -> None:
    """As in Go: `--flag`, `--flag=true` or `--flag=false`."""
    options: dict[str, Any] = {"nargs": "?", "const": True, "default": default, "type": boolean}
    group.add_argument(flag, metavar="BOOL", help=help_, **options)


def _size(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of attempts, got {text!r}")
    return int(text)


def _bytes(text: str) -> int:
    from mooring.api.quantity import parse_quantity

    try:
        found = parse_quantity(text).value
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found < 1 << 20:
        raise argparse.ArgumentTypeError(f"expected a size of 1Mi or more, got {text!r}")
    return found


def boolean(text: str) -> bool:
    """A boolean as Go's flags spell it."""
    if text.lower() in ("true", "t", "1"):
        return True
    if text.lower() in ("false", "f", "0"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, got {text!r}")


def duration(text: str) -> Duration:
    """A duration as Go's flags spell it."""
    from mooring.config.duration import Duration  # imported late: --help is instant

    try:
        return Duration.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """For `type=…`: a whole number between two others."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"expected {least} to {most}, got {text!r}")
        return int(text)

    return parse


def interval(text: str) -> float:
    """Seconds between two looks at a cluster."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"expected seconds from 0.1 to 3600, got {text!r}")
    return seconds


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, got {text!r}")
    return share

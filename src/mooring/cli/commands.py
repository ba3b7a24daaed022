"""The shape of the command line: the flags of each command, and the function that runs it.

A command's function is imported when it is called: `--help` loads nothing but flags.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from mooring.cli.cluster_flags import add_cluster_flags, add_scale_flags
from mooring.cli.extender_flags import add_extender_flags
from mooring.cli.imagine_flags import (
    add_capacity_flags,
    add_compare_flags,
    add_snapshot_flags,
    add_what_if_flags,
)
from mooring.cli.live_flags import (
    add_queue_flags,
    add_records_flags,
    add_replay_flags,
    add_top_flags,
)
from mooring.cli.run import flags
from mooring.cli.source_flags import add_source_flags
from mooring.cli.ui_flags import add_ui_flags

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


NEW_PLUGIN_POINTS = (
    "queue-sort",
    "pre-enqueue",
    "pre-filter",
    "filter",
    "post-filter",
    "pre-score",
    "score",
    "reserve",
    "permit",
    "pre-bind",
    "bind",
    "post-bind",
)


def add_commands(commands: Commands, called: str = "") -> None:
    """Add the command that is called; if there is none of that name, all, in the order of `--help`.

    To make the flags of all takes as long as to load the room that decides.
    """
    by_name = {
        "run": _add_run,
        "demo": _add_demo,
        "explain": _add_explain,
        "ui": _add_ui,
        **dict.fromkeys(("snapshot", "what-if", "capacity", "compare"), _add_imagine),
        **dict.fromkeys(("top", "queue", "records", "replay"), _add_live),
        "evaluate": _add_evaluate,
        "cluster": _add_cluster,
        "controller": _add_controller,
        "extender": _add_extender,
        "new": _add_new,
        "config": _add_config,
        "manifests": _add_manifests,
        "doctor": _add_doctor,
    }
    for add in (by_name[called],) if called in by_name else dict.fromkeys(by_name.values()):
        add(commands)


def calls(function: str, options: str) -> Callable[[argparse.Namespace], int]:
    """For `set_defaults(run=…)`: `module:function` of this room, and its options in that module."""
    module, _, name = function.partition(":")

    def call(parsed: argparse.Namespace) -> int:
        from mooring.cli.options import from_namespace

        command = import_module(f"mooring.cli.{module}")
        code: int = getattr(command, name)(from_namespace(getattr(command, options), parsed))
        return code

    return call


def _add_run(commands: Commands) -> None:
    run = commands.add_parser(
        "run",
        help="schedule pods of a real cluster; also plain `mooring --config FILE …`",
        description="Run a scheduler for the cluster of a kubeconfig, or the one it runs in.",
        allow_abbrev=False,
    )
    run.set_defaults(run=calls("run.command:run", "RunOptions"))
    flags.add_flags(run)


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="a cluster in this process, a scheduler with a plugin, and a short story",
        description="Run a cluster in this process with a scheduler and a plugin, and tell a short"
        " story: a rollout, a spread, a pod that does not fit, a node added, a preemption.",
    )
    demo.set_defaults(run=calls("demo.command:run", "DemoOptions"))
    demo.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    demo.add_argument(
        "--story",
        choices=("placement", "devices"),
        default="placement",
        help="placement (default), or devices: claims of simulated GPUs",
    )
    demo.add_argument(
        "--stay", action="store_true", help="keep the cluster for kubectl until Ctrl-C"
    )


def _add_explain(commands: Commands) -> None:
    explain = commands.add_parser(
        "explain",
        help="why is this pod pending, why is it there, and what would make it fit",
        description="Explain one pod by the scheduler's own evaluation: which plugin refuses which"
        " nodes and why, the points of the best nodes, preemption, and the smallest changes with"
        " which it would fit, each tried out on a private copy. Nothing is written to the cluster."
        " Exit code 3: it fits nowhere.",
    )
    explain.set_defaults(run=calls("explain:run", "ExplainOptions"))
    add = explain.add_argument
    add("pod", metavar="POD", help="name, or namespace/name")
    add("-n", "--namespace", default="", metavar="NAME", help="of the pod, if names are not unique")
    add(
        "--node",
        action="append",
        default=[],
        metavar="NAME",
        help="say more about this node; may be repeated",
    )
    add("--config", metavar="FILE", help="what the scheduler of the pod runs with")
    flags.add_plugin_flag(explain)
    add(
        "-o",
        "--output",
        choices=("table", "json", "yaml"),
        default="table",
        help="default: a table for people",
    )
    add("--no-remedies", action="store_true", help="do not look for changes that would help")
    add(
        "--matrix",
        default="",
        metavar="FILE",
        help="write every node and plugin as CSV; - is standard output, instead of the table",
    )
    add(
        "--watch",
        nargs="?",
        const=5.0,
        type=flags.interval,
        metavar="5",
        help="explain again every so many seconds until the pod has a node",
    )
    add(
        "--at",
        type=flags.whole_number(1, 2**62),
        metavar="SEQ",
        help="as it was at this attempt; --from is a folder of `mooring run --record-journal`",
    )
    add_source_flags(explain)


def _add_ui(commands: Commands) -> None:
    ui = commands.add_parser(
        "ui",
        help="look at a cluster, a running scheduler or a snapshot in the browser",
        description="Serve a page on loopback and open it: nodes as a heat map, the queue, why a"
        " pod is pending, what would happen if. The address works once. Nothing is written to the"
        " cluster.",
    )
    ui.set_defaults(run=calls("ui:run", "UiOptions"))
    add_ui_flags(ui)


def _add_imagine(commands: Commands) -> None:
    snapshot = commands.add_parser(
        "snapshot",
        help="write the objects of a cluster into a file, redacted if you like",
        description="Write what a scheduler reads of a cluster into a file. Only reads are sent;"
        " no environment, no arguments and no Secrets are written.",
    )
    snapshot.set_defaults(run=calls("snapshot:run", "SnapshotOptions"))
    add_snapshot_flags(snapshot)
    what_if = commands.add_parser(
        "what-if",
        help="what would happen if nodes were drained, added or lost, or pods scaled",
        description="Say which pods would move, find a node or lose theirs if something were done"
        " to a cluster. It is done to a copy in this process.",
    )
    what_if.set_defaults(run=calls("what_if:run", "WhatIfOptions"))
    add_what_if_flags(what_if)
    capacity = commands.add_parser(
        "capacity",
        help="how many more pods fit, where, and what keeps others off",
        description="Schedule copies of pods in a copy of a cluster until one does not fit.",
    )
    capacity.set_defaults(run=calls("capacity:run", "CapacityOptions"))
    add_capacity_flags(capacity)
    compare = commands.add_parser(
        "compare",
        help="what another configuration would place differently, and which plugin does it",
        description="Schedule the pods of a snapshot under several configurations and compare.",
    )
    compare.set_defaults(run=calls("compare:run", "CompareOptions"))
    add_compare_flags(compare)


def _add_live(commands: Commands) -> None:
    top = commands.add_parser(
        "top",
        help="what a running scheduler does: rates, queue, fullest zones, newest decisions",
        description="Show what a running scheduler does, in the terminal, until Ctrl-C.",
    )
    top.set_defaults(run=calls("top:run", "TopOptions"))
    add_top_flags(top)
    queue = commands.add_parser(
        "queue",
        help="the pods that wait for a running scheduler, and why",
        description="Show the pods without a node of a running scheduler, until Ctrl-C.",
    )
    queue.set_defaults(run=calls("waiting:run", "QueueCommandOptions"))
    add_queue_flags(queue)
    records = commands.add_parser(
        "records",
        help="what `mooring run --record-file` wrote: as a table, or for other programs",
        description="Read record files, also while they grow.",
    )
    records.set_defaults(run=calls("records:run", "RecordsOptions"))
    add_records_flags(records)
    replay = commands.add_parser(
        "replay",
        help="decide recorded attempts again, with the same or another configuration",
        description="Read what `mooring run --record-journal` kept, decide every attempt again and"
        " tell what differs. Exit code 3: something does.",
    )
    replay.set_defaults(run=calls("replay:run", "ReplayOptions"))
    add_replay_flags(replay)


def _add_evaluate(commands: Commands) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="would these pods fit, where and why: scenario lines in, result lines out",
        description="Read scenarios (one JSON object per line: a pod, a frozen cluster, a profile),"
        " evaluate every node, and write one JSON result line each. Of a snapshot, or a dump of"
        " objects, the pods that wait are evaluated.",
    )
    evaluate.set_defaults(run=calls("evaluate:run", "EvaluateOptions"))
    evaluate.add_argument(
        "files",
        nargs="*",
        metavar="SCENARIOS",
        help="files, .gz too, or snapshots; none or - is standard input",
    )
    evaluate.add_argument("--config", metavar="FILE", help="for scenarios without a profile")
    evaluate.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="processes (default: one per CPU)"
    )
    flags.add_plugin_flag(evaluate)


def _add_cluster(commands: Commands) -> None:
    cluster = commands.add_parser(
        "cluster",
        help="a cluster of simulated nodes in one process, for kubectl and any scheduler",
        description="Work with a cluster that exists only in one process.",
    )
    cluster.set_defaults(usage=cluster.print_help)
    actions = cluster.add_subparsers(dest="action", metavar="ACTION")
    text = "run an API server with simulated nodes until it is told to stop"
    up = actions.add_parser(
        "up",
        help=text,
        description=f"{text[0].upper()}{text[1:]}. What is not simulated is listed in"
        " docs/reference/cluster-limits.md.",
    )
    up.set_defaults(run=calls("cluster:up", "ClusterOptions"))
    add_cluster_flags(up)
    text = "change the number of nodes of a pool while the cluster runs"
    scale = actions.add_parser("scale", help=text, description=text.capitalize() + ".")
    scale.set_defaults(run=calls("cluster_scale:scale", "ScaleOptions"))
    add_scale_flags(scale)


def _add_controller(commands: Commands) -> None:
    controller = commands.add_parser(
        "controller",
        help="place pods by a function of your own that picks the node",
        description="Place the pods that name a scheduler by a Python function that picks the node;"
        " retries, conflicts, leader election and endpoints are taken care of.",
        allow_abbrev=False,
    )
    controller.set_defaults(run=calls("controller:run", "ControllerOptions"))
    controller.add_argument(
        "controller", metavar="MODULE:NAME", help="a function under @mooring.controller.controller"
    )
    group = controller.add_argument_group("which cluster")
    flags.add_connection(group)
    workers = flags.whole_number(1, 1000)
    group.add_argument(
        "--workers", type=workers, default=16, metavar="N", help="pods that are bound at once (16)"
    )
    flags.add_manners(controller.add_argument_group("beside other schedulers"))
    flags.add_leader_election(controller.add_argument_group("leader election"))
    flags.add_serving(controller.add_argument_group("endpoints"))
    flags.add_access(controller.add_argument_group("access to /metrics"))
    flags.add_logs(controller.add_argument_group("logs"))
    controller.set_defaults(leader_elect=False)  # most controllers start with one replica


def _add_extender(commands: Commands) -> None:
    extender = commands.add_parser(
        "extender",
        help="serve plugins or functions over HTTP to a kube-scheduler with `extenders:`",
        description="Serve the verbs of a scheduler extender that plugins or functions answer.",
        allow_abbrev=False,
    )
    extender.set_defaults(run=calls("extender:run", "ExtenderOptions"))
    add_extender_flags(extender)


def _add_new(commands: Commands) -> None:
    new = commands.add_parser(
        "new", help="start something of your own", description="Start something of your own."
    )
    new.set_defaults(usage=new.print_help)
    actions = new.add_subparsers(dest="action", metavar="WHAT")
    text = "make a folder with a plugin, its configuration, and a test that passes"
    plugin = actions.add_parser("plugin", help=text, description=text.capitalize() + ".")
    plugin.set_defaults(run=calls("new:run", "NewPluginOptions"))
    plugin.add_argument("name", metavar="NAME", help="such as PreferSsd or prefer-ssd")
    plugin.add_argument(
        "--folder", default="", metavar="DIR", help="where to put it (default: ./prefer-ssd)"
    )
    plugin.add_argument(
        "--point",
        action="append",
        default=[],
        choices=NEW_PLUGIN_POINTS,
        help="what to begin with; may be repeated (default: filter and score)",
    )


def _add_config(commands: Commands) -> None:
    config = commands.add_parser(
        "config",
        help="check, complete or convert a KubeSchedulerConfiguration file",
        description="Work with KubeSchedulerConfiguration files: kubescheduler.config.k8s.io/v1,"
        " v1beta3 to v1alpha1, and Policy; also inside a ConfigMap.",
    )
    config.set_defaults(usage=config.print_help)
    actions = config.add_subparsers(dest="action", metavar="ACTION")
    for name, text in (
        ("validate", "list every problem of a file, each with its place"),
        ("show", "print the effective configuration after defaults, as YAML"),
    ):
        action = actions.add_parser(name, help=text, description=text.capitalize() + ".")
        action.set_defaults(run=calls(f"config:{name}", "ConfigOptions"))
        action.add_argument("file", metavar="FILE", help="the configuration; - is standard input")
        flags.add_plugin_flag(action)
    convert = actions.add_parser(
        "convert",
        help="print a file of any version as v1, with comments on what changed",
        description="Print a configuration file as kubescheduler.config.k8s.io/v1 with the same"
        " meaning: v1beta3, v1beta2, v1beta1, v1alpha2, v1alpha1 with the Policy it refers to, a"
        " Policy alone, or a manifest with one of these in a ConfigMap. Comments say what changed"
        " and what has no counterpart; what cannot mean the same is an error.",
    )
    convert.set_defaults(run=calls("config:convert", "ConvertOptions"))
    convert.add_argument("file", metavar="FILE", help="the configuration; - is standard input")
    convert.add_argument(
        "-o", "--output", default="", metavar="FILE", help="write there instead of printing"
    )


def _add_manifests(commands: Commands) -> None:
    manifests = commands.add_parser(
        "manifests",
        help="print what a scheduler needs in a cluster: rights, configuration, Deployment",
        description="Print the objects with which a scheduler runs in a cluster. It may do what its"
        " plugins need, and nothing else.",
    )
    manifests.set_defaults(run=calls("manifests.command:run", "ManifestOptions"))
    add = manifests.add_argument
    add("--name", required=True, help="of the objects; of the profile too, if the file names none")
    add("--namespace", default="kube-system", help="where it runs (default kube-system)")
    add("--config", default="", metavar="FILE", help="the configuration; - is standard input")
    add("--image", metavar="IMAGE", help="what to run (default mooring, in this version)")
    add("--replicas", type=int, metavar="N", help="default 2; 1 without leader election")
    add(
        "--priority-class",
        metavar="NAME",
        help="of the pods (default system-cluster-critical in kube-system, elsewhere none)",
    )
    add("-o", "--output", choices=("yaml", "json"), default="yaml", help="default yaml")
    add(
        "--write-to",
        default="",
        metavar="PATH",
        help="a file for everything, or a folder, or a name that ends with /, for a file each",
    )
    flags.add_plugin_flag(manifests)


def _add_doctor(commands: Commands) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="what is wrong with this installation, configuration or cluster, and what to do",
        description="Check the installation, the configuration, the API server, its clock, the"
        " rights, other schedulers, leases and the cost of plugins. Nothing is written to the"
        " cluster. Exit code 1: there is a problem.",
    )
    doctor.set_defaults(run=calls("doctor.command:run", "DoctorOptions"))
    doctor.add_argument("--config", metavar="FILE", default="", help="what the scheduler runs with")
    flags.add_plugin_flag(doctor)
    flags.add_kubeconfig(doctor.add_argument_group("which cluster"))
    doctor.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: for people"
    )

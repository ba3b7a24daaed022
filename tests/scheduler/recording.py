"""Plugins that write down every call and answer as a test tells them, and the world around them."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

import mooring.framework as fw
from mooring.cache.internals import listing_of
from mooring.framework.plugin import Base
from mooring.queue.backoff import has_rejectors
from mooring.simulator import Simulation
from mooring.testing.builders import node

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FRAME = ("PrioritySort", "DefaultBinder")

VARIABLES = ("parallel", "wakes_on", "reports_waiting")

Log = list[str]
USUAL = object()
"""Returned by a callable answer that has nothing special to say."""


class Probe(
    fw.PreEnqueue,
    fw.PreFilter,
    fw.Filter,
    fw.PostFilter,
    fw.PreScore,
    fw.Score,
    fw.Reserve,
    fw.Permit,
    fw.PreBind,
    fw.Bind,
    fw.PostBind,
):
    """Serves every point but QueueSort. An answer that is callable is called with plugin and input.

    Unless told otherwise it agrees with everything, and leaves binding to the next plugin.
    """

    name = "Probe"
    wakes_on = (fw.Event.NODE_ADDED,)
    log: ClassVar[Log]
    answers: ClassVar[Mapping[str, Any]]

    def answer(self, method: str, otherwise: Any, *args: Any) -> Any:
        self.log.append(f"{self.name}.{method}")
        given = self.answers.get(method, otherwise)
        found = given(self, *args) if callable(given) else given
        return otherwise if found is USUAL else found

    async def answer_async(self, method: str, otherwise: Any, *args: Any) -> Any:
        given = self.answer(method, otherwise, *args)
        found = await given if hasattr(given, "__await__") else given
        return otherwise if found is USUAL else found

    def pre_enqueue(self, pod: fw.Pod) -> Any:
        return self.answer("pre_enqueue", fw.OK, pod)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> Any:
        return self.answer("pre_filter", fw.OK, state, pod, nodes)

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> Any:
        return self.answer("add_pod", fw.OK, state, pod, added, node)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Any:
        return self.answer("filter", fw.OK, state, pod, node)

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts
    ) -> Any:
        return self.answer("post_filter", fw.Status.unschedulable(), state, pod, nodes, verdicts)

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> Any:
        return self.answer("pre_score", fw.OK, state, pod, nodes)

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Any:
        return self.answer("score", 0, state, pod, node)

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> Any:
        return self.answer("normalize_score", scores, state, pod, nodes, scores)

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return self.answer("reserve", fw.OK, state, pod, node_name)

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return self.answer("unreserve", None, state, pod, node_name)

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return self.answer("permit", fw.OK, state, pod, node_name)

    def pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return self.answer("pre_flight", fw.OK, state, pod, node_name)

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return await self.answer_async("pre_bind", fw.OK, state, pod, node_name)

    async def bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return await self.answer_async("bind", fw.SKIP, state, pod, node_name)

    async def post_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return await self.answer_async("post_bind", None, state, pod, node_name)


def probe(name: str, log: Log, **answers: Any) -> type[Probe]:
    """A plugin class of its own; keywords are answers by method, or class variables."""
    variables = {key: answers.pop(key) for key in VARIABLES if key in answers}
    body: dict[str, Any] = {"name": name, "log": log, "answers": answers, "__module__": __name__}
    return type(name, (Probe,), body | variables)


def configure(
    names: Sequence[str], *, scheduler: str = "default-scheduler", plugins: str = "", more: str = ""
) -> str:
    """One profile that runs exactly these plugins, at every point they serve.

    `plugins` are further lines below `plugins:`, `more` further lines of the profile.
    """
    enabled = ", ".join(f"{{name: {name}}}" for name in names)
    lines = [
        f"- schedulerName: {scheduler}",
        "  plugins:",
        f"    multiPoint: {{disabled: [{{name: '*'}}], enabled: [{enabled}]}}",
        *(f"    {line}" for line in plugins.splitlines()),
        *(f"  {line}" for line in more.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def world(
    *classes: type[Base],
    nodes: Sequence[str] = ("a", "b"),
    with_plugins: Sequence[str] = FRAME,
    plugins: str = "",
    more: str = "",
    settings: str = "",
    budget: float = 5.0,
) -> Simulation:
    """A simulation of these plugins, then the frame, on empty nodes of these names."""
    names = [*(known.name for known in classes), *with_plugins]
    text = HEADER + settings + "profiles:\n" + configure(names, plugins=plugins, more=more)
    sim = Simulation(config=text, plugins=classes, plugin_budget=budget)
    sim.apply(*(node(name) for name in nodes))
    sim.settle()
    return sim


def once(log: Log) -> str:
    """The calls as one line; the same call for several nodes in a row counts once."""
    return " ".join(call for call, _ in groupby(log))


def after(log: Log, method: str) -> str:
    """What was called from the first call of a method on, but for the gate of the queue."""
    first = next(i for i, call in enumerate(log) if call.endswith(f".{method}"))
    return once([call for call in log[first:] if not call.endswith(".pre_enqueue")])


def place(sim: Simulation, name: str) -> str | None:
    """Where a pod is: a queue, with errors told apart, or the node it is bound to."""
    key = f"default/{name}"
    queued = sim.scheduler.queue._sub_queues.find(key)
    if queued is None:
        return sim.node_of(name) or None
    where = sim.where(name)
    return "error backoff" if where == "backoff" and not has_rejectors(queued) else where


def rejectors(sim: Simulation, name: str) -> str:
    """The plugins whose events may wake a pod, those that said Pending in brackets."""
    queued = sim.scheduler.queue._sub_queues.find(f"default/{name}")
    if queued is None:
        return ""
    pending = queued.pending_plugins
    names = sorted(queued.unschedulable_plugins | pending)
    return " ".join(f"[{name}]" if name in pending else name for name in names)


def reason(sim: Simulation, name: str) -> str:
    """The reason of a pod's PodScheduled condition."""
    conditions = sim.pod(name).status.conditions
    return next((c.reason for c in conditions if c.type == "PodScheduled"), "")


def notes(sim: Simulation, name: str) -> list[str]:
    """The Events about a pod: reason and note."""
    return [f"{e.reason}: {e.note}" for e in sim.events if e.pod == f"default/{name}"]


def columns(sim: Simulation) -> dict[str, object]:
    """Every column a plugin can see, as values."""
    nodes = sim.scheduler.cache.nodes
    resources = ("cpu", "memory", "pods")
    return {
        "names": nodes.names,
        "allocatable": {key: nodes.allocatable(key).tolist() for key in resources},
        "requested": {key: nodes.requested(key).tolist() for key in resources},
        "nonzero": {key: nodes.nonzero_requested(key).tolist() for key in resources},
        "counts": nodes.pod_counts.tolist(),
        "unschedulable": nodes.unschedulable.tolist(),
        "listing": listing_of(nodes).tolist(),
        "labels": [dict(member.labels) for member in nodes],
        "objects": tuple(member.api for member in nodes),
    }

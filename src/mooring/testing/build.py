"""A built plugin for tests, with a handle that a test can set and read.

    headroom = build(Headroom, reserve=0.25)

Arguments are decoded as those of a configuration file, so a wrong one raises the same
`ConfigError`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from mooring.api import core
from mooring.api.meta import Condition, Object
from mooring.cache.cache import Cache
from mooring.cache.node import Node
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.config.decode import decode_args
from mooring.errors import ApiError, ConfigError
from mooring.framework.handle import Handle, WaitingPod
from mooring.framework.plugin import Args, Base, Filter, PreFilter, PreScore
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status

P = TypeVar("P", bound=Base)

START: Final = 1_767_225_600.0
"""The start of a stub's clock: 2026-01-01T00:00:00Z."""


class StubClock:
    """A clock that moves by `advance` and `sleep` only."""

    def __init__(self, now: float = START) -> None:
        self.time: float = now  # seconds since the epoch

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.time += max(seconds, 0.0)


class StatusPatch(NamedTuple):
    """One call of `patch_pod_status`."""

    pod: Pod
    condition: Condition | None
    nominated_node: str | None


class StubClient:
    """Records the writes. If `failure` is set, it is raised instead."""

    def __init__(self) -> None:
        self.bindings: list[core.Binding] = []
        self.patches: list[StatusPatch] = []
        self.deleted: list[Pod] = []
        self.updates: list[Object] = []
        self.failure: ApiError | None = None

    async def bind(self, binding: core.Binding) -> None:
        self._fail_if_told()
        self.bindings.append(binding)

    async def patch_pod_status(
        self, pod: Pod, condition: Condition | None, nominated_node: str | None
    ) -> None:
        self._fail_if_told()
        self.patches.append(StatusPatch(pod, condition, nominated_node))

    async def delete_pod(self, pod: Pod) -> None:
        self._fail_if_told()
        self.deleted.append(pod)

    async def update(self, value: Object) -> None:
        self._fail_if_told()
        self.updates.append(value)

    def _fail_if_told(self) -> None:
        if self.failure is not None:
            raise self.failure


class StubWhatIf:
    """What-ifs without filters: every pod fits everywhere and belongs to this scheduler.

    Set `filters` to run some plugins, in order, as a profile would.
    """

    def __init__(self) -> None:
        self.filters: list[Filter] = []

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: Node) -> Status:
        for plugin in self.filters:
            if isinstance(plugin, PreFilter):
                plugin.add_pod(state, pod, added, node)
        return OK

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: Node) -> Status:
        for plugin in self.filters:
            if isinstance(plugin, PreFilter):
                plugin.remove_pod(state, pod, removed, node)
        return OK

    def fits(self, state: CycleState, pod: Pod, node: Node) -> Status:
        for plugin in self.filters:
            status = plugin.filter(state, pod, node)
            if not status.ok:
                return status.by(plugin.name)
        return OK

    def is_ours(self, pod: Pod) -> bool:
        return True


class RecordedEvent(NamedTuple):
    """One Kubernetes Event that a plugin recorded."""

    pod: Pod
    type: str
    reason: str
    action: str
    note: str
    related: Pod | None = None


class StubRecorder:
    """Keeps Events in the order they were recorded."""

    def __init__(self) -> None:
        self.events: list[RecordedEvent] = []

    def event(
        self, pod: Pod, type_: str, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        self.events.append(RecordedEvent(pod, type_, reason, action, note, related))


class StubWaitingPod:
    """A pod that waits at Permit. The first decision is final, as in a scheduler."""

    def __init__(self, pod: Pod, node_name: str, pending_plugins: Iterable[str] = ()) -> None:
        self.pod = pod
        self.node_name = node_name
        self.allowed: bool = False
        self.rejected_by: tuple[str, str] | None = None  # plugin, reason
        self._pending = list(pending_plugins)

    @property
    def pending_plugins(self) -> Sequence[str]:
        return tuple(self._pending)

    def allow(self, plugin: str) -> None:
        if self.rejected_by is None and plugin in self._pending:
            self._pending.remove(plugin)
            self.allowed = not self._pending

    def reject(self, plugin: str, reason: str) -> bool:
        if self.allowed or self.rejected_by is not None:
            return False
        self.rejected_by = (plugin, reason)
        return True


class StubWaitingPods:
    """The pods that wait at Permit, from `pods`."""

    def __init__(self, pods: Iterable[WaitingPod] = ()) -> None:
        self.pods: list[WaitingPod] = list(pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(self.pods)

    def get(self, uid: str) -> WaitingPod | None:
        return next((waiting for waiting in self.pods if waiting.pod.uid == uid), None)


class StubNominator:
    """Nominated pods by node name, from `nominations`."""

    def __init__(self, nominations: Mapping[str, Sequence[Pod]] | None = None) -> None:
        self.nominations: dict[str, Sequence[Pod]] = dict(nominations or {})

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        return self.nominations.get(node_name, ())

    def nominated_nodes(self) -> Sequence[str]:
        return [name for name, pods in self.nominations.items() if pods]


class StubHandle:
    """A `Handle` without a scheduler; a test can set and read every part."""

    def __init__(
        self,
        *,
        nodes: Nodes | None = None,
        objects: Iterable[Any] | Objects = (),
        scheduler_name: str = core.DEFAULT_SCHEDULER_NAME,
        seed: int = 0,
        nominations: Mapping[str, Sequence[Pod]] | None = None,
        waiting: Iterable[WaitingPod] = (),
    ) -> None:
        self.scheduler_name = scheduler_name
        self.nodes: Nodes = Cache().nodes if nodes is None else nodes
        self.objects: Objects = objects if isinstance(objects, Objects) else _stored(objects)
        self.clock: StubClock = StubClock()
        self.random: random.Random = random.Random(seed)
        self.client: StubClient = StubClient()
        self.recorder: StubRecorder = StubRecorder()
        self.waiting: StubWaitingPods = StubWaitingPods(waiting)
        self.what_if: StubWhatIf = StubWhatIf()
        self.nominator: StubNominator = StubNominator(nominations)
        self.activated: list[str] = []  # pod keys, "namespace/name"

    def activate(self, pods: Iterable[str]) -> None:
        self.activated.extend(pods)


def build(plugin: type[P], *, handle: Handle | None = None, **args: Any) -> P:
    """A plugin with these arguments, the fields of its `Args`; ConfigError if they are wrong."""
    handle = StubHandle() if handle is None else handle
    handle.objects.declare(plugin.reads)
    return plugin(arguments(plugin, args), handle)


def arguments(plugin: type[Base], args: Mapping[str, Any]) -> Args:
    """The `Args` of a plugin from plain values; fields may be spelt as in Python or as in YAML."""
    spelt = {field.name: field.encode_name for field in msgspec.structs.fields(plugin.args_type)}
    raw = {spelt.get(name, name): value for name, value in args.items()}
    path = f"pluginConfig[{plugin.name}].args"
    value, problems = decode_args(raw, plugin.args_type, plugin.name, path)
    if value is None:
        raise ConfigError(problems)
    return value


def prepare(plugin: Base, pod: Pod, nodes: Nodes | None = None) -> CycleState:
    """The cycle state of a pod after PreFilter and PreScore of a plugin."""
    state = CycleState()
    nodes = Cache().nodes if nodes is None else nodes
    if isinstance(plugin, PreFilter):
        plugin.pre_filter(state, pod, nodes)
    if isinstance(plugin, PreScore):
        plugin.pre_score(state, pod, nodes)
    return state


def _stored(values: Iterable[Any]) -> Objects:
    objects = Objects()
    for value in values:
        objects.put(value)
    return objects

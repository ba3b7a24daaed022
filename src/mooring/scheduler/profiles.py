"""The runtime of each profile, built from a configuration at the start."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec

from mooring.cache.pods import Pod
from mooring.decision.evaluator import PodEvaluator
from mooring.extender.calling.caller import NAME as EXTENDER
from mooring.framework import plugin as contract
from mooring.framework._internal import InternalPlugin, gated_reads
from mooring.framework.events import DEFAULT_WAKES_ON, Action, ClusterEvent
from mooring.queue.hints import Registration, with_taint_fallback
from mooring.runtime.commit import Committer
from mooring.runtime.guard import Guard
from mooring.runtime.handle import ProfileHandle
from mooring.runtime.profile import Profile
from mooring.runtime.runner import Runner
from mooring.scheduler.binding import Binder
from mooring.scheduler.cycle import Cycle
from mooring.scheduler.watching import event_name


class ProfileRuntime(msgspec.Struct, frozen=True):
    """Everything that one schedulerName runs: plugins, cycle and binding."""

    profile: Profile
    handle: ProfileHandle
    runner: Runner
    evaluator: PodEvaluator
    committer: Committer
    cycle: Cycle
    binder: Binder


def registrations(
    profile: Profile, guard: Guard, *, has_extenders: bool
) -> tuple[Registration, ...]:
    """The events that may help pods refused by a plugin of a profile or by an extender."""
    found: list[Registration] = []
    for plugin in profile.plugins.values():
        if not isinstance(plugin, contract.CAN_REFUSE):
            continue
        events = DEFAULT_WAKES_ON if plugin.wakes_on is None else plugin.wakes_on
        if isinstance(plugin, InternalPlugin):
            gated = gated_reads(type(plugin), plugin.feature_gates)
            events += tuple(ClusterEvent(event_name(kind), Action.ALL) for kind in gated)
        own_hint = type(plugin).hint is not contract.Base.hint
        hint = partial(_ask_hint, guard, plugin) if own_hint else None
        found += [Registration(event, plugin.name, hint) for event in events]
    if has_extenders:  # the events that help are not known
        found += [Registration(event, EXTENDER, None) for event in DEFAULT_WAKES_ON]
    return with_taint_fallback(found)


def asked_for_every_pod(profiles: Iterable[Profile]) -> list[str]:
    """The Filter and Score plugins of users that declare no `depends_on`."""
    names = {
        plugin.name
        for profile in profiles
        for plugin in (*profile.at(contract.Filter), *profile.at(contract.Score))
        if not isinstance(plugin, InternalPlugin) and plugin.depends_on is None
    }
    return sorted(names)


def _ask_hint(
    guard: Guard,
    plugin: contract.Base,
    event: ClusterEvent,
    pod: Pod,
    old: object | None,
    new: object | None,
) -> bool:
    answer = guard.call(plugin, "QueueingHint", plugin.hint, event, pod, old, new)
    if not isinstance(answer, bool):
        raise guard.wrong_answer(plugin, "QueueingHint", answer, "True or False")
    return answer

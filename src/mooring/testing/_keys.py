"""The key by which a plugin's answers for a pod are kept, made as `decision.memory` makes it.

Pods with equal keys share answers; the checks compare what a plugin says about such pods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from mooring.cache.pods import Pod
from mooring.decision.memory import vouches_for_reads
from mooring.framework.plugin import Base, DomainFilter, DomainScore
from mooring.framework.scope import Scope
from mooring.testing._attempt import Bench, Case, Fault, asking, show
from mooring.testing._likenesses import Stranger, stranger_to

BY_SPEC: Final = "key_from_spec says that it looks at nothing but the pod's spec"


class Key(NamedTuple):
    """Everything that decides which pods share answers about a node."""

    applies: bool  # False: the plugin is left out
    scope: Scope | None  # None: answers are not kept, except for tables by domain
    own: Hashable = None  # what `cache_key` says
    versions: tuple[int, ...] = ()  # of the kinds in `reads`

    @property
    def is_kept(self) -> bool:
        """Whether answers about nodes are kept by it."""
        return self.applies and self.scope is not None

    def difference(self, other: Key, this: str, that: str) -> str:
        """How it differs from another; `this` and `that` say what the two are about."""
        if self.applies != other.applies:
            return f"applies_to() is {self.applies} {this}, but {other.applies} {that}"
        if self.scope is not other.scope:
            return f"scope_of() is {self.scope} {this}, but {other.scope} {that}"
        if self.own != other.own:
            return f"cache_key() is {show(self.own)} {this}, but {show(other.own)} {that}"
        return f"objects of `reads` have other versions {this} than {that}"


class Known(NamedTuple):
    """A key, and what has to change before it is asked for again for pods that are alike."""

    key: Key
    version: Hashable  # what `key_version` says; None: it does not matter
    moment: Hashable  # of nodes, features of pods, and objects


def key_of(bench: Bench, pod: Pod) -> Key:
    plugin, handle = bench.plugin, bench.handle
    handle.nodes = bench.cache.nodes
    if not applies(bench, pod):
        return Key(applies=False, scope=None)
    scope, by_domain = scope_of(bench, pod), has_tables(type(plugin))
    if scope is None and not by_domain:
        return Key(applies=True, scope=None)
    with asking("cache_key"):
        own = plugin.cache_key(pod)
    try:
        hash(own)
    except TypeError:
        raise Fault(f"cache_key() returned {show(own)}, expected something hashable") from None
    if vouches_for_reads(plugin):
        return Key(True, scope, own)
    versions = tuple([handle.objects.version(kind) for kind in plugin.reads])
    return Key(True, scope, own, versions)


def applies(bench: Bench, pod: Pod) -> bool:
    with asking("applies_to"):
        answer: object = bench.plugin.applies_to(pod)
    if not isinstance(answer, bool):
        raise Fault(f"applies_to() returned {show(answer)}, expected a bool")
    return answer


def scope_of(bench: Bench, pod: Pod) -> Scope | None:
    with asking("scope_of"):
        scope: object = bench.plugin.scope_of(pod)
    if scope is not None and not isinstance(scope, Scope):
        raise Fault(f"scope_of() returned {show(scope)}, expected a Scope or None")
    return scope


def known_of(bench: Bench) -> Known:
    """The key of the pod of the case, as things are now."""
    bench.handle.nodes = bench.cache.nodes
    with asking("key_version"):
        version = bench.plugin.key_version()
    key = key_of(bench, bench.case.pod)
    return Known(key, version, (bench.cache.nodes.structure, bench.handle.objects.changes))


def check_is_asked_again(bench: Bench, before: Known, after: Known, words: str) -> None:
    """Another key must not go unnoticed; `words` say what happened."""
    if after.key == before.key:
        return
    found = after.key.difference(before.key, f"after {words}", "before")
    if bench.plugin.key_from_spec:
        raise Fault(f"{found}; {BY_SPEC}")
    if after.moment == before.moment:
        raise Fault(
            f"{found}; that would go unnoticed: it is asked for again only if a node, an object or"
            " a feature of pods on nodes (count_features) has changed, and none has"
        )
    if after.version is not None and after.version == before.version:
        raise Fault(
            f"{found}; that would go unnoticed: key_version() still is {show(after.version)}"
        )


def has_scope(plugin_class: type[Base]) -> bool:
    """Whether a plugin may have a scope for some pods."""
    return plugin_class.scope is not None or plugin_class.scope_of is not Base.scope_of


def has_tables(plugin_class: type[Base]) -> bool:
    return issubclass(plugin_class, DomainFilter | DomainScore)


def has_own_key(plugin_class: type[Base]) -> bool:
    return plugin_class.cache_key is not Base.cache_key


def strangers_to(case: Case, is_like: Callable[[Pod], bool]) -> list[Stranger]:
    """Pods that are like the one of the case: others that are pending, and one that is far off."""
    found = [Stranger(other, ()) for other in case.bystanders if is_like(other)]
    return [*found, stranger_to(case.pod, is_like)]


def describe_stranger(stranger: Stranger) -> str:
    """A few words for the pod."""
    if not stranger.others:
        return stranger.pod.key
    return f"a pod with other {', '.join(stranger.others)}"

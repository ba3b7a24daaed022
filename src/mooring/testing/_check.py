"""Checks of a plugin class: of the class itself, or on small clusters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from mooring.api.meta import Object
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.errors import ConfigError
from mooring.framework.plugin import Base
from mooring.testing._bench import Bench, Case, Fault, PluginFailed
from mooring.testing._random_clusters import Cluster, random_cluster
from mooring.testing._shrink import smallest
from mooring.testing.build import arguments

Raw = Mapping[str, Any]
NO_ARGS: Final[Raw] = {}


class Examples(msgspec.Struct, frozen=True):
    """The clusters that a plugin is tested on: random ones by seed, with these objects added.

    A plugin that reads special labels, resources or objects is only tested by pods, nodes and
    objects that have them.
    """

    seeds: Iterable[int] = range(24)
    pods: Sequence[Pod] = ()  # to be scheduled
    nodes: Sequence[Node] = ()  # with the pods on them
    objects: Sequence[Object] = ()

    def cases(self, *, shared: bool = False) -> Iterator[Case]:
        """Every pod of every cluster."""
        for seed in self.seeds:
            cluster = random_cluster(seed)
            cluster = Cluster(
                (*cluster.nodes, *(node.api for node in self.nodes)),
                (*cluster.residents, *(pod for node in self.nodes for pod in node.pods)),
                (*cluster.objects, *self.objects),
                (*cluster.incoming, *self.pods),
            )
            for number, pod in enumerate(cluster.incoming):
                yield Case(cluster, pod, 1_000 * seed + number, shared)


DEFAULT_EXAMPLES: Final = Examples()


class Finding(NamedTuple):
    """What one check found in a plugin with some arguments."""

    check: str
    args: Raw
    fault: Fault

    def __str__(self) -> str:
        given = f" with args {dict(self.args)}" if self.args else ""
        return f"{self.check}{given}: {self.fault}"


class Check:
    """Call it with a plugin class; it raises AssertionError if the plugin fails."""

    def __init__(
        self, question: Callable[..., None], points: tuple[type[Base], ...], *, needs_cases: bool
    ) -> None:
        functools.update_wrapper(self, question)
        self.name: str = question.__name__
        self.needs_cases: bool = needs_cases
        self._question = question
        self._points = points

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def applies_to(self, plugin_class: type[Base]) -> bool:
        """Whether the plugin has an extension point that this check is about."""
        return not self._points or issubclass(plugin_class, self._points)

    def find(self, plugin_class: type[Base], args: Raw, cases: Iterable[Case]) -> Finding | None:
        """The finding of this check, if there is one."""
        if isinstance(plugin_class, type) and not self.applies_to(plugin_class):
            return None
        try:
            if self.needs_cases:
                self._ask_in_all(plugin_class, args, cases)
            else:
                self._question(plugin_class, args)
        except Fault as fault:
            return Finding(self.name, args, fault)
        return None

    def __call__(
        self, plugin_class: type[Base], args: Raw = NO_ARGS, examples: Examples = DEFAULT_EXAMPLES
    ) -> None:
        finding = self.find(plugin_class, args, examples.cases())
        if finding is not None:
            raise failure(plugin_class, [finding])

    def _ask_in_all(self, plugin_class: type[Base], args: Raw, cases: Iterable[Case]) -> None:
        """Run all cases: after a plugin failed in one, another may have a clearer finding."""
        try:
            decoded = arguments(plugin_class, args)
        except ConfigError as error:
            raise Fault(f"these args are refused: {error}") from error

        def ask(case: Case) -> Fault | None:
            try:
                self._question(Bench(plugin_class, decoded, case))
            except Fault as fault:
                return fault
            return None

        failed: tuple[Case, Fault] | None = None
        for case in cases:
            fault = ask(case)
            if fault is not None and not isinstance(fault, PluginFailed):
                raise smallest(case, fault, ask)
            if fault is not None and failed is None:
                failed = (case, fault)
        if failed is not None:
            raise smallest(*failed, ask)


def failure(plugin_class: type[Base], findings: Sequence[Finding]) -> AssertionError:
    """All findings in one error, numbered if there are several."""
    name = getattr(plugin_class, "name", None) or getattr(plugin_class, "__name__", "?")
    if len(findings) == 1:
        text = f"plugin {name} fails {findings[0]}"
    else:
        listed = [f"{number}. {finding}" for number, finding in enumerate(findings, start=1)]
        text = "\n\n".join([f"plugin {name} fails {len(findings)} checks:", *listed])
    error = AssertionError(text)
    error.__cause__ = findings[0].fault.__cause__
    return error


def on_the_class(*points: type[Base]) -> Callable[[Callable[[type[Base], Raw], None]], Check]:
    """A check that needs no cluster; without points it is for every plugin."""
    return lambda question: Check(question, points, needs_cases=False)


def on_every_case(*points: type[Base]) -> Callable[[Callable[[Bench], None]], Check]:
    """A check of every pod of every example; a failing case is shrunk first."""
    return lambda question: Check(question, points, needs_cases=True)

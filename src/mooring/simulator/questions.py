"""Questions about a snapshot as JSON: the bodies of `POST /lens/v1/what-if` and `…/capacity`.

They have the names of the flags of `mooring what-if` and `mooring capacity`; files are given as
their text. The answers are those of the commands. A question brings no configuration: that could
name code to be loaded.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import structs

from mooring.api import codec, core
from mooring.api.merging import with_merge_patch
from mooring.api.meta import Object
from mooring.errors import ConfigError, Problem
from mooring.framework.explaining import listed
from mooring.lens.completing import identified
from mooring.lens.explanation import ObjectPatch
from mooring.lens.reading import manifests_of
from mooring.lens.snapshot import KINDS, ClusterState, Snapshot
from mooring.simulator.answers import CapacityAnswer, WhatIfAnswer
from mooring.simulator.capacity import Demand, capacity
from mooring.simulator.changes import ClusterChanges
from mooring.simulator.imagine import Run, RunOutcome, imagine
from mooring.simulator.what_if import what_if
from mooring.simulator.workloads import is_workload, parse_scaling, pods_of, template_of

QuestionT = TypeVar("QuestionT", bound="_Question")

_FIELD_OF: Final[Mapping[str, str]] = {kind.KIND: field for field, kind in KINDS.items()}


class _Question(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """What all questions have."""

    seed: int = 0


class WhatIfQuestion(_Question, frozen=True, kw_only=True):
    """What is done to the cluster; names of nodes may be patterns."""

    drain: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    remove_nodes: tuple[str, ...] = ()
    add_nodes: int = 0
    like: str = ""  # node
    scale: tuple[str, ...] = ()  # deploy/web=50
    apply: str = ""  # manifests
    patches: tuple[ObjectPatch, ...] = ()  # of a remedy
    reschedule: bool = False


class CapacityQuestion(_Question, frozen=True, kw_only=True):
    """Which pods are to fit."""

    pods: str  # manifests
    mix: tuple[int, ...] = ()
    max: int | None = None
    gains: bool = True


class Imagination:
    """Answers questions about one snapshot; the outcome without changes is kept.

    `base` has the configuration and the plugins, if they are not those of the snapshot.
    """

    def __init__(self, snapshot: Snapshot, name: str = "", base: Run | None = None) -> None:
        self._snapshot = snapshot
        self._name = name
        self._base = base or Run()
        self._before: tuple[int, RunOutcome] | None = None  # by seed

    def what_if(self, body: bytes) -> WhatIfAnswer:
        """ConfigError if the question is malformed, or asks for what cannot be."""
        question = _decoded(body, WhatIfQuestion)
        snapshot = self._snapshot
        edited = structs.replace(snapshot, cluster=patched(snapshot.cluster, question.patches))
        after = structs.replace(
            self._base,
            seed=question.seed,
            changes=_changes(question, snapshot),
            reschedule=question.reschedule,
        )
        # The faulty question is told before the time for the cluster as it is has been spent.
        outcome = imagine(edited, after)
        before = self._as_it_is(question.seed)
        words = tuple(_words(question, after.changes))
        return what_if(snapshot, after, before, outcome, name=self._name, changes=words)

    def capacity(self, body: bytes) -> CapacityAnswer:
        """Likewise."""
        question = _decoded(body, CapacityQuestion)
        shapes = _shapes(question.pods)
        mix = question.mix or (1,) * len(shapes)
        if len(mix) != len(shapes) or min(mix) < 1:
            text = f"expected {len(shapes)} numbers above 0, one for each pod"
            raise ConfigError([Problem("mix", text)])
        demand = Demand(shapes=shapes, mix=mix, most=question.max, gains=question.gains)
        run = structs.replace(self._base, seed=question.seed)
        return capacity(self._snapshot, demand, run, name=self._name)

    def _as_it_is(self, seed: int) -> RunOutcome:
        if self._before is None or self._before[0] != seed:
            run = structs.replace(self._base, seed=seed)
            self._before = seed, imagine(self._snapshot, run)
        return self._before[1]


def _decoded(body: bytes, kind: type[QuestionT]) -> QuestionT:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigError([Problem("the question", str(error))]) from error


def _changes(question: WhatIfQuestion, snapshot: Snapshot) -> ClusterChanges:
    if question.add_nodes and not question.like:
        raise ConfigError([Problem("like", "expected the node that the new ones are to be like")])
    return ClusterChanges(
        applied=_applied(question.apply) if question.apply else ClusterState(),
        scale=tuple(map(parse_scaling, question.scale)),
        add_nodes=question.add_nodes,
        like=_like(question.like, snapshot) if question.add_nodes else None,
        cordon=matching(question.cordon, snapshot),
        drain=matching(question.drain, snapshot),
        remove_nodes=matching(question.remove_nodes, snapshot),
    )


def _like(name: str, snapshot: Snapshot) -> core.Node:
    for node in snapshot.cluster.nodes:
        if node.metadata.name == name:
            return node
    raise ConfigError([Problem("like", f"there is no node {name}")])


def matching(patterns: Sequence[str], snapshot: Snapshot) -> tuple[str, ...]:
    """The nodes that these names and patterns mean; what matches none stays as it is."""
    known = [node.metadata.name for node in snapshot.cluster.nodes]
    found: list[str] = []
    for pattern in patterns:
        if re.search(r"[*?\[]", pattern):
            found += fnmatch.filter(known, pattern) or [pattern]
        else:
            found.append(pattern)
    return tuple(dict.fromkeys(found))


def _applied(text: str) -> ClusterState:
    snapshot, others = manifests_of(text.encode(), "apply")
    pods = [*snapshot.cluster.pods]
    for document in others:
        if not is_workload(document):
            kind = document.get("kind")
            raise ConfigError([Problem("apply", f"no scheduler reads objects of kind {kind}")])
        pods.extend(pods_of(document, "apply"))
    return structs.replace(snapshot.cluster, pods=tuple(pods))


def _shapes(text: str) -> tuple[core.Pod, ...]:
    snapshot, others = manifests_of(text.encode(), "pods")
    found = [*snapshot.cluster.pods]
    found += [template_of(one, "pods") for one in others if is_workload(one)]
    if not found:
        raise ConfigError([Problem("pods", "expected a Pod, or a workload with a template")])
    return tuple(found)


def _words(question: WhatIfQuestion, changes: ClusterChanges) -> Iterator[str]:
    for verb, nodes in (
        ("cordon", changes.cordon),
        ("drain", changes.drain),
        ("remove", changes.remove_nodes),
    ):
        if nodes:
            yield f"{verb} {listed(nodes)}"
    if question.add_nodes:
        plural = "" if question.add_nodes == 1 else "s"
        yield f"add {question.add_nodes:,} node{plural} like {question.like}"
    yield from (f"scale {text}" for text in question.scale)
    if question.apply:
        yield "apply manifests"
    for patch in question.patches:
        name = f"{patch.namespace}/{patch.name}" if patch.namespace else patch.name
        yield f"{'delete' if patch.patch is None else 'patch'} {patch.kind} {name}"
    if question.reschedule:
        yield "all pods placed anew"


# --- patches --------------------------------------------------------------------------------------


def patched(cluster: ClusterState, patches: Sequence[ObjectPatch]) -> ClusterState:
    """The cluster with JSON merge patches applied; a patch of what is not there makes it."""
    changed: dict[str, dict[tuple[str, str], Object]] = {}
    for patch in patches:
        field = _FIELD_OF.get(patch.kind)
        if field is None:
            raise ConfigError([Problem("patches", f"no scheduler reads {patch.kind}")])
        if field not in changed:
            every = getattr(cluster, field)
            changed[field] = {(one.metadata.namespace, one.metadata.name): one for one in every}
        _patch(changed[field], patch, KINDS[field])
    return structs.replace(cluster, **{field: tuple(v.values()) for field, v in changed.items()})


def _patch(objects: dict[tuple[str, str], Object], patch: ObjectPatch, kind: type[Object]) -> None:
    key = (patch.namespace if kind.NAMESPACED else "", patch.name)
    before = objects.get(key)
    if patch.patch is None:
        if objects.pop(key, None) is None:
            text = f"there is no {patch.kind} {'/'.join(filter(None, key))}"
            raise ConfigError([Problem("patches", text)])
        return
    fields = with_merge_patch({} if before is None else codec.to_builtins(before), patch.patch)
    try:
        after = codec.convert(fields, kind)
    except codec.DecodeError as error:
        raise ConfigError([Problem(f"patches: {patch.kind} {patch.name}", str(error))]) from error
    objects[key] = identified(after)

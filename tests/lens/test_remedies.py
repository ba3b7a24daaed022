"""Remedies on random clusters: each makes the pod fit, none of its edits can be left out.

`MOORING_LENS_REFUSALS=5000` looks at that many refused pods instead of a few.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import structs
from tests.lens.brute_force import one_edit_helps
from tests.lens.clusters import cluster_of, default_plan

from mooring.api import codec, core
from mooring.api.meta import Object
from mooring.cache.pods import Pod
from mooring.lens.explanation import ObjectPatch, Remedy
from mooring.lens.private import PrivateCluster
from mooring.lens.remedies import RemedySearch, remedies_for
from mooring.lens.snapshot import KINDS, ClusterState
from mooring.testing._random_clusters import Cluster, random_cluster

REFUSALS = int(os.environ.get("MOORING_LENS_REFUSALS", "20"))
PLAN = default_plan()
BY_NAME = {kind.KIND: (field, kind) for field, kind in KINDS.items()}


def state_of(cluster: Cluster) -> ClusterState:
    plain = cluster_of((), cluster.residents, cluster.objects)
    return structs.replace(plain, nodes=cluster.nodes)


def refusals(first_seed: int = 0) -> Iterator[tuple[ClusterState, PrivateCluster, Pod]]:
    """Pods that fit no node, each with its cluster."""
    for seed in itertools.count(first_seed):
        cluster = random_cluster(seed)
        if not cluster.nodes:
            continue
        state = state_of(cluster)
        private = PrivateCluster(PLAN, state)
        for pod in cluster.incoming:
            if pod.node_name:
                continue
            told = private.inspector.explain(pod, preemption=False)
            if told.kind != "error" and (not told.feasible or told.kind == "gated"):
                yield state, private, pod


def merged(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    found = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), change)
    return found


def patched(state: ClusterState, pod: Pod, remedy: Remedy) -> tuple[ClusterState, Pod]:
    """The cluster with the patches of a remedy, as kubectl would make them."""
    return with_patches(state, pod, (one for edit in remedy.edits for one in edit.patches))


def with_patches(
    state: ClusterState, pod: Pod, patches: Iterable[ObjectPatch]
) -> tuple[ClusterState, Pod]:
    for patch in patches:
        if (patch.kind, patch.namespace, patch.name) == ("Pod", pod.namespace, pod.name):
            fields = merged(codec.to_builtins(pod.api), patch.patch)
            pod = Pod(codec.convert(fields, core.Pod))
        else:
            state = with_patch(state, patch)
    return state, pod


def with_patch(state: ClusterState, patch: ObjectPatch) -> ClusterState:
    field, kind = BY_NAME[patch.kind]
    objects: list[Object] = list(getattr(state, field))
    place = next(
        (
            place
            for place, one in enumerate(objects)
            if (one.name, one.namespace if kind.NAMESPACED else "") == (patch.name, patch.namespace)
        ),
        None,
    )
    before = codec.to_builtins(objects[place]) if place is not None else {}
    if patch.patch is None:
        assert place is not None
        del objects[place]
    else:
        after: Any = codec.convert(merged(before, patch.patch), kind)
        if place is None:
            objects.append(after)
        else:
            objects[place] = after
    return structs.replace(state, **{field: tuple(objects)})


def assert_sound(
    state: ClusterState, private: PrivateCluster, pod: Pod, search: RemedySearch
) -> None:
    for remedy, proven in zip(search.remedies, search.proven, strict=True):
        changed, changed_pod = patched(state, pod, remedy)
        evaluation = PrivateCluster(PLAN, changed).fits(changed_pod)
        assert evaluation is not None, (pod.key, remedy.text)
        assert evaluation.count == remedy.nodes
        assert len(proven.edits) <= 3
        for left_out in proven.edits:
            others = [edit for edit in proven.edits if edit is not left_out]
            fresh = PrivateCluster(PLAN, state)
            with fresh.edited(pod, others) as other:
                assert fresh.fits(other) is None, (pod.key, remedy.text, left_out.text)
    adds = [any("add a node" in e.text for e in one.edits) for one in search.remedies]
    assert adds == sorted(adds), "a node is added last"
    assert private.fits(pod) is None, "the private copy is as before"


def test_each_remedy_makes_the_pod_fit_and_needs_all_its_edits() -> None:
    offered = seen = 0
    for state, private, pod in itertools.islice(refusals(), REFUSALS):
        search = remedies_for(private, pod)
        assert search.problems == []
        assert search.tried <= 64 + 3 * 64
        assert_sound(state, private, pod, search)
        offered += bool(search.remedies)
        seen += 1
    assert seen == REFUSALS
    assert offered > 0.8 * seen


def test_where_one_edit_helps_one_is_offered() -> None:
    helped = offered = 0
    missed: list[str] = []
    for state, private, pod in refusals(first_seed=100_000):
        if len(state.nodes) > 6 or not one_edit_helps(PLAN, state, pod):
            continue
        helped += 1
        search = remedies_for(private, pod)
        singles = [one for one in search.remedies if len(one.edits) == 1]
        if any("add a node" not in one.text for one in singles):
            offered += 1
        else:
            missed.append(f"{pod.key}: {private.inspector.explain(pod).message}")
        if helped == max(REFUSALS // 2, 12):
            break
    assert offered >= 0.95 * helped, "\n".join(missed)

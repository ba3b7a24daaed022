"""Server-side apply: ownership of fields, conflicts, and removal of fields without owners."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.apiserver.random_objects import RandomObjects, comparable, take_away
from tests.controlplane.admin import MERGE_PATCH, STRATEGIC_PATCH, AdminApi, ApiFailure, Object
from tests.controlplane.cluster import ControlPlane

from mooring.client.errors import ConflictError, StatusError
from mooring.cluster.apiserver.patching.apply import LAST_APPLIED
from mooring.cluster.apiserver.patching.fieldsets import from_tree, to_tree
from mooring.cluster.apiserver.patching.managed_fields import tracked
from mooring.cluster.apiserver.patching.patch import APPLY_PATCH, patched
from mooring.cluster.apiserver.resources import known

DEPLOYMENTS = known("deployments", "apps")
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"


def deployment(*, labels: Mapping[str, str] | None = None, **spec: Any) -> Object:
    metadata: Object = {"name": "web", "namespace": "default"}
    if labels is not None:
        metadata["labels"] = dict(labels)
    made: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    return {**made, "spec": spec} if spec else made


def containers(*names: str, **parts: Any) -> Object:
    return {"spec": {"containers": [{"name": name, **parts} for name in names]}}


def apply(
    live: Object | None,
    config: Object,
    manager: str = "me",
    *,
    force: bool = False,
    now: str = EARLY,
    subresource: str = "",
) -> Object:
    return patched(
        DEPLOYMENTS,
        copy.deepcopy(live),
        json.dumps(config).encode(),
        APPLY_PATCH,
        manager=manager,
        force=force,
        now=now,
        subresource=subresource,
    )


def update(live: Object, manager: str, **spec: Any) -> Object:
    """A write that is no apply."""
    new = copy.deepcopy(live)
    new.setdefault("spec", {}).update(spec)
    return tracked(live, new, manager, "", LATE)


def owned(value: Object, manager: str) -> Object:
    """What a manager owns, as FieldsV1."""
    for entry in value["metadata"]["managedFields"]:
        if entry["manager"] == manager:
            fields: Object = entry["fieldsV1"]
            return fields
    raise LookupError(f"{manager} owns nothing")


# --- what is applied ------------------------------------------------------------------------------


def test_creates_what_is_not_there_and_says_whose_it_is() -> None:
    made = apply(None, deployment(labels={"a": "1"}, replicas=2))
    assert made["spec"] == {"replicas": 2}
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": EARLY,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}}},
        }
    ]


def test_changes_nothing_when_the_same_is_applied_again() -> None:
    config = deployment(labels={"a": "1"}, template=containers("c", image="i"))
    made = apply(None, config)
    assert apply(made, config, now=LATE) == made


def test_takes_away_what_is_not_applied_any_more() -> None:
    made = apply(None, deployment(labels={"a": "1", "b": "2"}, template=containers("c", "d")))
    made = apply(made, deployment(labels={"a": "1"}, template=containers("d")))
    assert made["metadata"]["labels"] == {"a": "1"}
    assert made["spec"]["template"] == containers("d")


def test_leaves_what_others_own_and_what_nobody_owns() -> None:
    made = apply(None, deployment(template=containers("c", image="i")))
    made["spec"]["paused"] = True  # a default: nobody said so
    made = apply(made, deployment(replicas=3), "other")
    made = apply(made, deployment(labels={"a": "1"}))
    assert made["spec"] == {"paused": True, "replicas": 3}


def test_owns_elements_of_lists_by_their_keys() -> None:
    port = {"containerPort": 80}
    made = apply(None, deployment(template=containers("c", ports=[port])))
    fields = owned(made, "me")["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert fields == {
        'k:{"name":"c"}': {
            ".": {},
            "f:name": {},
            "f:ports": {
                'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
            },
        }
    }


def test_adds_elements_of_several_managers_to_one_list() -> None:
    made = apply(None, deployment(template=containers("a", "b")))
    made = apply(made, deployment(template=containers("c")), "mesh")
    made = apply(made, deployment(template=containers("b", "a")))
    names = [one["name"] for one in made["spec"]["template"]["spec"]["containers"]]
    assert names == ["b", "c", "a"]


def test_reads_yaml() -> None:
    body = b"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec: {replicas: 2}\n"
    made = patched(DEPLOYMENTS, None, body, APPLY_PATCH, manager="me", now=EARLY)
    assert made["spec"] == {"replicas": 2}


def test_shares_what_several_apply_alike() -> None:
    made = apply(None, deployment(replicas=3))
    made = apply(made, deployment(replicas=3), "other")
    made = apply(made, deployment(labels={"a": "1"}))
    assert made["spec"] == {"replicas": 3}  # the other still wants it
    made = apply(made, deployment(labels={"b": "1"}), "other")
    assert "replicas" not in made.get("spec", {})


# --- conflicts ------------------------------------------------------------------------------------


def test_names_the_one_who_owns_what_is_to_change() -> None:
    made = apply(None, deployment(replicas=2))
    with pytest.raises(ConflictError) as caught:
        apply(made, deployment(replicas=3), "other")
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "me": .spec.replicas'
    assert caught.value.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "me"',
                "field": ".spec.replicas",
            }
        ]
    }


def test_names_the_version_and_the_part_an_update_came_by() -> None:
    made = tracked(None, deployment(replicas=2), "kubectl-client-side-apply", "", EARLY)
    with pytest.raises(ConflictError) as caught:
        apply(made, deployment(replicas=3))
    assert str(caught.value) == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: '
        ".spec.replicas"
    )
    scaled = copy.deepcopy(made)
    scaled["spec"]["replicas"] = 5
    scaled = tracked(made, scaled, "scaler", "scale", LATE)
    with pytest.raises(
        ConflictError, match='with "scaler" with subresource "scale" using apps/v1: '
    ):
        apply(scaled, deployment(replicas=3))


def test_lists_several_conflicts_by_manager() -> None:
    made = apply(None, deployment(replicas=2, template=containers("c", image="i")))
    made = apply(made, deployment(paused=True), "other")
    config = deployment(replicas=3, paused=False, template=containers("c", image="j"))
    with pytest.raises(ConflictError) as caught:
        apply(made, config, "third")
    assert str(caught.value) == (
        'Apply failed with 3 conflicts: conflicts with "me":\n'
        "- .spec.replicas\n"
        '- .spec.template.spec.containers[name="c"].image\n'
        'conflicts with "other":\n'
        "- .spec.paused"
    )


def test_takes_fields_over_by_force() -> None:
    made = apply(None, deployment(replicas=2, paused=True))
    made = apply(made, deployment(replicas=3), "other", force=True)
    assert made["spec"] == {"replicas": 3, "paused": True}
    assert owned(made, "me") == {"f:spec": {"f:paused": {}}}
    with pytest.raises(ConflictError, match='conflict with "other"'):
        apply(made, deployment(replicas=2, paused=True))


def test_finds_everything_owned_where_nobody_kept_count() -> None:
    live = deployment(replicas=2, paused=True)
    with pytest.raises(
        ConflictError, match=r'"before-first-apply" using apps/v1: \.spec\.replicas'
    ):
        apply(live, deployment(replicas=3))
    made = apply(live, deployment(replicas=2))
    assert owned(made, "before-first-apply") == {"f:spec": {"f:paused": {}, "f:replicas": {}}}


def test_lets_kubectl_take_over_what_it_applied_without_the_server() -> None:
    last = json.dumps(deployment(replicas=2))
    live = deployment(replicas=2)
    live["metadata"]["annotations"] = {LAST_APPLIED: last}
    live = tracked(None, live, "kubectl-client-side-apply", "", EARLY)
    with pytest.raises(ConflictError):
        apply(live, deployment(replicas=3), "somebody")
    made = apply(live, deployment(replicas=3), "kubectl")
    assert made["spec"]["replicas"] == 3
    assert json.loads(made["metadata"]["annotations"][LAST_APPLIED]) == deployment(replicas=3)


@pytest.mark.parametrize("last", ["{", "4x", "[]", "[" * 3_000])
def test_passes_over_a_record_of_kubectl_that_cannot_be_read(last: str) -> None:
    live = deployment(replicas=2)
    live["metadata"]["annotations"] = {LAST_APPLIED: last}
    live = tracked(None, live, "kubectl-client-side-apply", "", EARLY)
    with pytest.raises(ConflictError, match='conflict with "kubectl-client-side-apply"'):
        apply(live, deployment(replicas=3), "kubectl")


# --- writes that are no apply ---------------------------------------------------------------------


def test_does_not_follow_objects_that_nobody_named_himself_for() -> None:
    made = tracked(None, deployment(replicas=2), "", "", EARLY, agent="kube-scheduler")
    assert "managedFields" not in made["metadata"]
    assert "managedFields" not in update(made, "kubectl-edit", replicas=3)["metadata"]


def test_gives_changed_fields_to_whoever_changed_them() -> None:
    made = apply(None, deployment(replicas=2, paused=True))
    made = update(made, "editor", replicas=5)
    assert owned(made, "me") == {"f:spec": {"f:paused": {}}}
    assert owned(made, "editor") == {"f:spec": {"f:replicas": {}}}


def test_calls_the_unnamed_by_their_program() -> None:
    made = apply(None, deployment(replicas=2))
    new = copy.deepcopy(made)
    new["spec"]["replicas"] = 3
    new = tracked(made, new, "", "", LATE, agent="kube-controller-manager")
    assert owned(new, "kube-controller-manager") == {"f:spec": {"f:replicas": {}}}


def test_keeps_the_books_as_they_are_if_nothing_changes() -> None:
    made = apply(None, deployment(replicas=2))
    assert update(made, "editor", replicas=2) == made


def test_keeps_parts_of_the_object_apart() -> None:
    made = apply(None, deployment(replicas=2)) | {"status": {}}
    new = copy.deepcopy(made) | {"status": {"replicas": 2}}
    new = tracked(made, new, "controller", "status", LATE)
    entry = new["metadata"]["managedFields"][1]
    assert entry["subresource"] == "status"
    assert entry["fieldsV1"] == {"f:status": {"f:replicas": {}}}


def test_forgets_who_owned_what_when_asked_to() -> None:
    made = apply(None, deployment(replicas=2))
    new = copy.deepcopy(made)
    new["metadata"]["managedFields"] = [{}]
    assert "managedFields" not in tracked(made, new, "me", "", LATE)["metadata"]


def test_believes_whoever_writes_the_books_himself() -> None:
    made = tracked(None, deployment(replicas=2), "kubectl-create", "", EARLY)
    new = copy.deepcopy(made)
    new["metadata"]["managedFields"][0] |= {"manager": "kubectl", "operation": "Apply"}
    new = tracked(made, new, "kubectl", "", LATE)
    [entry] = new["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl", "Apply")


# --- what is no wish ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        ({}, 400, "invalid object type: /, Kind="),
        ({"apiVersion": "v1", "kind": "Pod"}, 400, "invalid object type: /v1, Kind=Pod"),
        (
            [],
            400,
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
            "unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            {**deployment(), "metadata": {"name": "web", "managedFields": []}},
            400,
            "metadata.managedFields must be nil",
        ),
        (
            {**deployment(), "metadata": 5},
            500,
            "failed to create typed patch object (/; apps/v1, Kind=Deployment): .metadata: "
            "expected map, got &{5}",
        ),
        (
            deployment(foo=1),
            500,
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
            ".spec.foo: field not declared in schema",
        ),
        (
            deployment(replicas="x"),
            500,
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            deployment(template="x"),
            500,
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
            ".spec.template: expected map, got &{x}",
        ),
        (
            deployment(template=containers("c", "c")),
            500,
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
            '.spec.template.spec.containers: duplicate entries for key [name="c"]',
        ),
        (
            deployment(template={"spec": {"containers": ["c"]}}),
            500,
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
            ".spec.template.spec.containers: element 0: associative list with keys may not have "
            "non-map elements",
        ),
    ],
)
def test_says_what_is_wrong_with_an_apply(config: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        apply(None, config)
    assert str(caught.value) == message
    assert caught.value.code == code


def test_wants_to_know_who_applies() -> None:
    with pytest.raises(StatusError) as caught:
        apply(None, deployment(), "")
    assert str(caught.value) == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
        "apply patch"
    )
    assert caught.value.code == 422


@settings(deadline=None)
@given(
    st.sets(
        st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"c"}', 'v:"d"']), min_size=1).map(tuple)
    )
)
def test_writes_sets_of_fields_and_reads_them_again(fields: set[tuple[str, ...]]) -> None:
    assert from_tree(to_tree(fields)) == fields


# --- beside the real server -----------------------------------------------------------------------


class _Story:
    """One deployment on the real server, written to by several managers."""

    def __init__(self, admin: AdminApi, seed: int) -> None:
        self.objects = RandomObjects(seed)
        self._admin = admin
        self.name = f"applied-{seed}"
        self._path = f"/apis/apps/v1/namespaces/default/deployments/{self.name}"
        self.live: Object | None = None
        self.agreed = 0

    def apply(self) -> None:
        config = self.objects.deployment(self.name)
        if self.live is not None and self.objects.happens(0.5):
            config["spec"] = {"replicas": self.objects.number(4)}
        manager, force = self.objects.random.choice(["m1", "m2"]), self.objects.happens(0.3)
        query = f"?fieldManager={manager}&force={str(force).lower()}"
        body = json.dumps(config).encode()

        def ours() -> Object:
            live = copy.deepcopy(self.live)
            return patched(DEPLOYMENTS, live, body, APPLY_PATCH, manager=manager, force=force)

        try:
            theirs = self._admin.request("PATCH", self._path + query, config, APPLY_PATCH)
        except ApiFailure as failure:
            if failure.code == 409:
                with pytest.raises(ConflictError, match=f"^{re.escape(failure.message)}$"):
                    ours()
                self.agreed += 1
            return
        made = ours()
        assert comparable(made) == comparable(theirs), json.dumps(config)
        assert _books(made) == _books(theirs), json.dumps(config)
        self.agreed += 1
        self.live = theirs

    def update(self, part: str) -> None:
        if self.live is None:
            return
        if part:
            kinds = self.objects.some(["A", "B"])
            conditions = [{"type": kind, "status": "True"} for kind in kinds]
            patch: Object = {
                "status": {"replicas": self.objects.number(3), "conditions": conditions}
            }
            path, media = f"{self._path}/status", MERGE_PATCH
        else:
            patch = self.objects.strategic(self.objects.deployment(self.name))
            path, media = self._path, STRATEGIC_PATCH
        query = "?fieldManager=editor&fieldValidation=Ignore"
        try:
            theirs = self._admin.request("PATCH", path + query, patch, media)
        except ApiFailure:
            return
        new = copy.deepcopy(theirs)
        new["metadata"].pop("managedFields", None)
        new = tracked(self.live, new, "editor", part, LATE)
        assert _books(new) == _books(theirs), json.dumps(patch)
        self.agreed += 1
        self.live = theirs


def _books(value: Object) -> list[Object]:
    entries = value["metadata"].get("managedFields", ())
    books = [{key: part for key, part in one.items() if key != "time"} for one in entries]
    return sorted(books, key=json.dumps)


@pytest.mark.parametrize("seed", range(5))
def test_keeps_the_same_books_as_the_real_server(seed: int, real_server: ControlPlane) -> None:
    story = _Story(real_server.admin, seed)
    for _ in range(40):
        kind = story.objects.random.choice(["apply", "apply", "apply", "update", "status"])
        if kind == "apply":
            story.apply()
        else:
            story.update("" if kind == "update" else "status")
    take_away(real_server.admin, story.name)
    assert story.agreed > 15


def test_keeps_the_same_books_of_a_new_object(real_server: ControlPlane) -> None:
    admin = real_server.admin
    path = "/apis/apps/v1/namespaces/default/deployments?fieldManager=kubectl-create"
    theirs = admin.request("POST", path, RandomObjects(7).deployment("created"))
    ours = copy.deepcopy(theirs)
    ours["metadata"].pop("managedFields")
    ours = tracked(None, ours, "kubectl-create", "", EARLY)
    take_away(admin, "created")
    assert _books(ours) == _books(theirs)

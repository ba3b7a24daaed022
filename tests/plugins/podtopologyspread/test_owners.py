"""Default constraints: which pods belong together if nobody says so."""

from typing import Any

import pytest

from mooring.api import codec, core
from mooring.cache.objects import Objects
from mooring.framework import Pod
from mooring.plugins.podtopologyspread.owners import default_selector
from mooring.testing import pod

Json = dict[str, Any]
KINDS = {kind.KIND: kind for kind in codec.KINDS}


def stored(*objects: Json) -> Objects:
    store = Objects()
    for raw in objects:
        store.put(codec.convert(raw, KINDS[raw["kind"]]))
    return store


def service(name: str, selector: Json | None, namespace: str = "default") -> Json:
    meta = {"name": name, "namespace": namespace}
    return {"kind": "Service", "metadata": meta, "spec": {"selector": selector or {}}}


def controller(kind: str, selector: Json) -> Json:
    meta = {"name": "owner", "namespace": "default"}
    return {"kind": kind, "metadata": meta, "spec": {"selector": selector}}


def owned(labels: dict[str, str], api_version: str, kind: str, *, controls: bool = True) -> Pod:
    plain = pod("p", labels=labels)
    raw = codec.to_builtins(plain.api)
    reference = {"apiVersion": api_version, "kind": kind, "name": "owner", "controller": controls}
    raw["metadata"]["ownerReferences"] = [reference]
    return Pod(codec.convert(raw, core.Pod))


def test_nobody_selects_a_lone_pod() -> None:
    assert default_selector(stored(), pod("p", labels={"app": "web"})).is_empty


def test_merges_the_services_that_select_the_pod() -> None:
    objects = stored(
        service("a", {"app": "web"}),
        service("b", {"tier": "front"}),
        service("c", {"app": "db"}),
        service("d", {"app": "web", "zone": "x"}),
        service("e", None),
        service("f", {"team": "z"}, namespace="other"),
    )
    labels = {"app": "web", "tier": "front", "team": "z"}
    assert str(default_selector(objects, pod("p", labels=labels))) == "app=web,tier=front"


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_adds_what_the_controller_requires(kind: str) -> None:
    raw = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "rev", "operator": "In", "values": ["1", "2"]}],
    }
    objects = stored(service("a", {"tier": "front"}), controller(kind, raw))
    subject = owned({"tier": "front"}, "apps/v1", kind)
    assert str(default_selector(objects, subject)) == "tier=front,app=web,rev in (1,2)"


def test_a_replication_controller_has_the_last_word_on_a_label() -> None:
    objects = stored(
        service("a", {"app": "web"}),
        controller("ReplicationController", {"app": "other", "rev": "1"}),
    )
    subject = owned({"app": "web"}, "v1", "ReplicationController")
    assert str(default_selector(objects, subject)) == "app=other,rev=1"


@pytest.mark.parametrize(
    ("api_version", "kind", "controls"),
    [
        ("apps/v1", "ReplicaSet", False),
        ("extensions/v1beta1", "ReplicaSet", True),
        ("apps/v1", "DaemonSet", True),
        ("apps/v1", "StatefulSet", True),  # there is no such object
    ],
)
def test_other_owners_have_no_say(api_version: str, kind: str, controls: bool) -> None:
    objects = stored(controller("ReplicaSet", {"matchLabels": {"app": "web"}}))
    subject = owned({"app": "web"}, api_version, kind, controls=controls)
    assert default_selector(objects, subject).is_empty


@pytest.mark.parametrize("raw", [None, {"matchExpressions": [{"key": "a", "operator": "Near"}]}])
def test_a_controller_that_selects_nothing_sensible_is_passed_over(raw: Json | None) -> None:
    broken = {"kind": "ReplicaSet", "metadata": {"name": "owner", "namespace": "default"}}
    objects = stored(service("a", {"app": "web"}), broken | {"spec": {"selector": raw}})
    subject = owned({"app": "web"}, "apps/v1", "ReplicaSet")
    assert str(default_selector(objects, subject)) == "app=web"

"""Custom resources in a cluster: what other parts of it make of them.

What the API server answers is compared with the real one in `test_recorded_answers.py`.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.apiserver.compared_requests import (
    Step,
    ask_ours,
    delete,
    get,
    patch,
    post,
    request_of,
    watch_ours,
)
from tests.cluster.apiserver.customresources.manifests import (
    DEFINITIONS,
    ELASTIC_QUOTA,
    GROUPS,
    POD_GROUP,
    POD_GROUPS,
    Object,
    definition,
    pod_group,
)
from tests.cluster.apiserver.in_process_server import InProcessServer

from mooring.cluster.apiserver.persistence import Persistence
from mooring.cluster.apiserver.requests import WatchResponse
from mooring.cluster.apiserver.resources import NAMESPACES
from mooring.cluster.apiserver.server import ApiServer, new_store
from mooring.testing.sandbox import Sandbox

BY_KUBECTL = "?fieldManager=kubectl"


@pytest.fixture
def server() -> InProcessServer:
    made = InProcessServer()
    made.ask(post(f"{DEFINITIONS}{BY_KUBECTL}", definition()))
    return made


def conditions(server: InProcessServer, path: str = POD_GROUPS) -> dict[str, str]:
    found = server.ask(get(path))["status"]["conditions"]
    return {one["type"]: one["status"] for one in found}


# --- definitions ----------------------------------------------------------------------------------


def test_is_established_with_the_answer_to_its_creation(server: InProcessServer) -> None:
    assert conditions(server) == {"NamesAccepted": "True", "Established": "True"}
    assert server.ask(get(GROUPS))["kind"] == "PodGroupList"


def test_takes_the_objects_along_when_it_is_deleted(server: InProcessServer) -> None:
    server.ask(post(f"{GROUPS}{BY_KUBECTL}", pod_group()))
    said = server.ask(delete(POD_GROUPS, {"propagationPolicy": "Background"}))
    assert said["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert server.refusal(get(POD_GROUPS))[0] == 404
    assert not server.store._items["podgroups.scheduling.x-k8s.io"]  # not even hidden ones


def test_waits_for_finalizers_of_its_objects(server: InProcessServer) -> None:
    held = pod_group()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    server.ask(post(GROUPS, held))
    server.ask(delete(POD_GROUPS))
    assert conditions(server)["Terminating"] == "True"
    assert server.refusal(post(GROUPS, pod_group("late")))[0] == 403
    server.ask(patch(f"{GROUPS}/train", {"metadata": {"finalizers": None}}))
    assert server.refusal(get(POD_GROUPS))[0] == 404


def test_refuses_conversion_by_webhook_in_a_sentence() -> None:
    value = definition()
    value["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://example.com/convert"},
        },
    }
    code, words = InProcessServer().refusal(post(DEFINITIONS, value))
    assert code == 422
    assert "conversion by webhook is not supported: this server calls no webhooks" in words


def test_serves_the_shapes_of_scheduler_plugins(server: InProcessServer) -> None:
    server.ask(post(DEFINITIONS, definition(ELASTIC_QUOTA)))
    quotas = GROUPS.replace("podgroups", "elasticquotas")
    made = server.ask(
        post(
            quotas,
            {
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "kind": "ElasticQuota",
                "metadata": {"name": "team"},
                "spec": {"min": {"cpu": 4}, "max": {"cpu": "8", "nvidia.com/gpu": 2}},
            },
        )
    )
    assert made["spec"] == {"min": {"cpu": 4}, "max": {"cpu": "8", "nvidia.com/gpu": 2}}
    group = server.ask(post(GROUPS, pod_group(minResources={"cpu": 4, "memory": "1Gi"})))
    assert group["spec"]["scheduleTimeoutSeconds"] == 60
    bad = pod_group("bad", minResources={"cpu": "four"})
    assert "should match '^(\\+|-)?" in server.refusal(post(GROUPS, bad))[1]


# --- objects --------------------------------------------------------------------------------------


def test_names_unknown_fields_of_a_patch(server: InProcessServer) -> None:
    server.ask(post(GROUPS, pod_group()))
    step = patch(f"{GROUPS}/train?fieldValidation=Strict", {"spec": {"minMembers": 4}})
    code, words = server.refusal(step)
    assert code == 422
    assert words.endswith('strict decoding error: unknown field "spec.minMembers"')


def test_has_no_protobuf_form(server: InProcessServer) -> None:
    step = Step("POST", GROUPS, "k8s", "application/vnd.kubernetes.protobuf")
    code, words = server.refusal(step)
    assert code == 415
    assert "accepted media types include: application/json, application/yaml" in words
    code, words = server.refusal(get(GROUPS, accept="application/vnd.kubernetes.protobuf"))
    assert code == 406


def test_says_who_owns_which_field(server: InProcessServer) -> None:
    made = server.ask(post(f"{GROUPS}?fieldManager=me", pod_group()))
    [entry] = made["metadata"]["managedFields"]
    spec: Object = {".": {}, "f:minMember": {}, "f:scheduleTimeoutSeconds": {}}
    assert (entry["manager"], entry["operation"]) == ("me", "Update")
    assert entry["fieldsV1"] == {"f:spec": spec}
    changed = server.ask(patch(f"{GROUPS}/train/status", {"status": {"phase": "Running"}}))
    [_, entry] = changed["metadata"]["managedFields"]
    assert (entry["subresource"], entry["fieldsV1"]) == (
        "status",
        {"f:status": {".": {}, "f:phase": {}}},
    )


def test_keeps_what_was_invalid_before_its_schema_changed(server: InProcessServer) -> None:
    server.ask(post(GROUPS, pod_group()))
    value = definition()
    whole: Object = value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    whole["properties"]["spec"]["properties"]["minMember"]["minimum"] = 5
    server.ask(patch(POD_GROUPS, {"spec": {"versions": value["spec"]["versions"]}}))
    server.ask(patch(f"{GROUPS}/train", {"spec": {"scheduleTimeoutSeconds": 7}}))
    code, words = server.refusal(patch(f"{GROUPS}/train", {"spec": {"minMember": 2}}))
    assert (code, words.partition(": ")[2]) == (
        422,
        "spec.minMember: Invalid value: 2: spec.minMember in body should be greater than or equal "
        "to 5",
    )


def test_watches_begin_and_end_with_the_definition(server: InProcessServer) -> None:
    server.ask(post(GROUPS, pod_group()))
    step = get(f"{GROUPS}?watch=1&timeoutSeconds=300")

    async def told() -> list[Object]:
        watching = server.server.answer(request_of(step, "default"))
        assert isinstance(watching, WatchResponse)
        lines: list[bytes] = []
        async for chunk in watching.chunks:
            lines += chunk.splitlines()
            if len(lines) == 1:
                server.ask(delete(POD_GROUPS))
        return [json.loads(line) for line in lines]

    events = asyncio.run(asyncio.wait_for(told(), 30))
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]


def test_is_read_by_watches_in_their_version(server: InProcessServer) -> None:
    value = definition()
    [version] = value["spec"]["versions"]
    value["spec"]["versions"].append({**version, "name": "v1", "storage": False})
    server.ask(patch(POD_GROUPS, {"spec": {"versions": value["spec"]["versions"]}}))
    server.ask(post(GROUPS, pod_group()))
    path = GROUPS.replace("v1alpha1", "v1")
    told = watch_ours(server.server, get(f"{path}?watch=1&timeoutSeconds=1"), "default")
    [event] = told.value
    assert event["object"]["apiVersion"] == "scheduling.x-k8s.io/v1"


# --- the rest of the cluster ----------------------------------------------------------------------


def test_is_there_again_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "data"
    with Persistence(file) as saved:
        store = new_store()
        saved.attach(store)
        first = InProcessServer(store)
        first.ask(post(DEFINITIONS, definition()))
        first.ask(post(GROUPS, pod_group()))
    with Persistence(file) as saved:
        store = new_store()
        saved.attach(store)
        again = InProcessServer(store)
        assert again.ask(get(f"{GROUPS}/train"))["spec"]["minMember"] == 3
        assert again.refusal(post(GROUPS, pod_group("bad", minMember=0)))[0] == 422
        again.ask(delete(POD_GROUPS))
        assert again.refusal(get(POD_GROUPS))[0] == 404


def test_goes_with_its_namespace(server: InProcessServer) -> None:
    server.create(NAMESPACES, "team")
    path = GROUPS.replace("default", "team")
    group = pod_group()
    group["metadata"]["namespace"] = "team"
    server.ask(post(path, group))
    server.ask(delete("/api/v1/namespaces/team"))
    assert server.refusal(get("/api/v1/namespaces/team"))[0] == 404
    assert server.ask(get(path))["items"] == []


def owned_by(owner: Object, name: str) -> Object:
    reference = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference |= {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    meta = {"name": name, "namespace": "default", "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def test_owns_other_objects_and_is_owned() -> None:
    with Sandbox() as sandbox:
        sandbox.apply(POD_GROUP)
        [group] = sandbox.apply(pod_group())
        [settings] = sandbox.apply(owned_by(group, "settings"))
        dependent = pod_group("second")
        dependent["metadata"]["ownerReferences"] = owned_by(settings, "")["metadata"][
            "ownerReferences"
        ]
        sandbox.apply(dependent)
        sandbox.advance(1)
        assert [one["metadata"]["name"] for one in sandbox.all("pg")] == ["second", "train"]
        sandbox.delete("podgroup", "train")
        sandbox.advance(1)
        assert sandbox.all("pg") == []
        assert "settings" not in [one["metadata"]["name"] for one in sandbox.all("configmaps")]


def test_is_applied_from_manifests_with_its_status() -> None:
    with Sandbox() as sandbox:
        sandbox.apply(POD_GROUP, pod_group() | {"status": {"phase": "Running"}})
        assert sandbox.get("PodGroup", "train")["status"] == {"phase": "Running"}
        sandbox.apply(pod_group(scheduleTimeoutSeconds=5))
        assert sandbox.get("pg", "train")["spec"] == {"minMember": 3, "scheduleTimeoutSeconds": 5}


# --- documents ------------------------------------------------------------------------------------


def test_is_described_in_openapi(server: InProcessServer) -> None:
    index = server.ask(get("/openapi/v3"))["paths"]
    document = server.ask(get(index["apis/scheduling.x-k8s.io/v1alpha1"]["serverRelativeURL"]))
    schemas = document["components"]["schemas"]
    kind = schemas["io.x-k8s.scheduling.v1alpha1.PodGroup"]
    assert kind["properties"]["spec"]["properties"]["minMember"]["description"] == "how many pods"
    assert "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" in schemas
    old = server.ask(get("/openapi/v2"))["definitions"]["io.x-k8s.scheduling.v1alpha1.PodGroup"]
    amounts = old["properties"]["spec"]["properties"]["minResources"]["additionalProperties"]
    assert "anyOf" not in amounts
    assert old["properties"]["metadata"]["$ref"].startswith("#/definitions/")


def test_version_2_of_openapi_says_nothing_of_objects_with_any_field(
    server: InProcessServer,
) -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    spec = {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{**version, "schema": {"openAPIV3Schema": anything}}],
    }
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    meta = {"name": "things.example.com"}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    server.ask(post(path, {**kind, "metadata": meta, "spec": spec}))
    found = server.ask(get("/openapi/v2"))["definitions"]["com.example.v1.Thing"]
    mark = [{"group": "example.com", "kind": "Thing", "version": "v1"}]
    assert found == {"type": "object", "x-kubernetes-group-version-kind": mark}


def test_is_discovered_at_once_and_no_longer_than_it_is_there(server: InProcessServer) -> None:
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    def found() -> list[Any]:
        items = server.ask(get("/apis", accept=aggregated))["items"]
        return [one for one in items if one["metadata"]["name"] == "scheduling.x-k8s.io"]

    [group] = found()
    [resource] = group["versions"][0]["resources"]
    assert (resource["resource"], resource["shortNames"]) == ("podgroups", ["pg", "pgs"])
    assert [one["subresource"] for one in resource["subresources"]] == ["status"]
    server.ask(delete(POD_GROUPS))
    assert found() == []


def test_servers_do_not_share_their_definitions(server: InProcessServer) -> None:
    other = ApiServer()
    assert ask_ours(other, get(GROUPS), "default").status == 404
    assert server.ask(get(GROUPS))["items"] == []


# --- rules in CEL ---------------------------------------------------------------------------------


def ruled(rule: Object, **properties: Object) -> Object:
    value = definition()
    whole: Object = value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    whole["properties"]["spec"]["x-kubernetes-validations"] = [rule]
    whole["properties"]["spec"]["properties"] |= properties
    return value


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("self.nope > 1", "undefined field 'nope'"),
        ("self.minMember >", "mismatched input '<EOF>', expecting an identifier"),
        ("other", "undeclared reference to 'other' (in container '')"),
        ("timestamp(self.phase) > now", "this server has no timestamp() in CEL"),
    ],
)
def test_refuses_rules_that_can_not_run(rule: str, why: str) -> None:
    code, words = InProcessServer().refusal(post(DEFINITIONS, ruled({"rule": rule})))
    assert code == 422
    assert "compilation failed" in words
    assert words.endswith(why)


def test_evaluates_numbers_as_what_the_schema_says() -> None:
    server = InProcessServer()
    server.ask(
        post(DEFINITIONS, ruled({"rule": "self.share * 2.0 <= 1.0"}, share={"type": "number"}))
    )
    assert server.ask(post(GROUPS, pod_group("half", share=0.5)))
    assert server.ask(post(GROUPS, pod_group("none", share=0)))
    assert "failed rule" in server.refusal(post(GROUPS, pod_group("whole", share=1)))[1]


def test_rules_of_the_status_are_for_the_status() -> None:
    value = definition()
    whole: Object = value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    rule = {"rule": "self.running >= 0", "message": "can't be negative"}
    whole["properties"]["status"]["x-kubernetes-validations"] = [rule]
    server = InProcessServer()
    server.ask(post(DEFINITIONS, value))
    server.ask(post(GROUPS, pod_group()))
    code, words = server.refusal(patch(f"{GROUPS}/train/status", {"status": {"running": -1}}))
    assert (code, words.partition(": ")[2]) == (422, "status: Invalid value: can't be negative")

"""What the server knows of the kinds is what the real one says."""

from __future__ import annotations

from tests.cluster.apiserver.make_schema import describe
from tests.controlplane.cluster import ControlPlane

from mooring.cluster.apiserver.resources import RESOURCES
from mooring.cluster.apiserver.schema import SCHEMA_FILE, Key, empty_object, schema_of


def test_is_what_the_real_server_describes(real_server: ControlPlane) -> None:
    assert SCHEMA_FILE.read_text() == describe(real_server.admin)


def test_knows_every_kind_that_is_served() -> None:
    for resource in RESOURCES:
        assert schema_of(resource.api_version, resource.kind) is not None


def test_knows_how_lists_are_merged() -> None:
    pod = schema_of("v1", "Pod")
    assert pod is not None
    container = pod.fields["spec"].fields["containers"]
    assert (container.merge_key, container.keys) == ("name", (Key("name", ""),))
    ports = container.items.fields["ports"]
    assert ports.keys == (Key("containerPort", 0), Key("protocol", "TCP"))
    assert pod.fields["spec"].fields["tolerations"].is_atomic
    finalizers = pod.fields["metadata"].fields["finalizers"]
    assert (finalizers.is_atomic, finalizers.keys, finalizers.strategies) == (False, (), ("merge",))


def test_knows_no_field_that_does_not_exist() -> None:
    pod = schema_of("v1", "Pod")
    assert pod is not None
    assert pod.at("sepc") is None
    assert schema_of("v1", "Prod") is None


def test_knows_what_an_empty_object_has() -> None:
    schema = schema_of("apps/v1", "Deployment")
    assert schema is not None
    template = {"metadata": {}, "spec": {"containers": None}}
    spec = {"strategy": {}, "template": template}
    assert empty_object(schema) == {"metadata": {}, "spec": spec, "status": {}}

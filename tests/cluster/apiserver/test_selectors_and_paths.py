"""Names, selectors and paths: what can be read, and that it is read as elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cluster.apiserver.in_process_server import PODS, InProcessServer

from mooring.api._names import is_label_value, is_qualified_name
from mooring.api.selectors import SelectorError, parse_label_query
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.field_selectors import parse_fields
from mooring.cluster.apiserver.label_selectors import parse_labels
from mooring.cluster.apiserver.names import label_value_faults, qualified_name_faults
from mooring.cluster.apiserver.paths import Target, parse_path
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.tables.response_format import accepted

LETTERS = "ab0-._/AB !"
KEYS = st.sampled_from(["app", "tier", "a.b/c", "x"])
VALUES = st.sampled_from(["", "a", "b", "1", "2"])
TESTS = st.one_of(
    st.builds("{}={}".format, KEYS, VALUES),
    st.builds("{} == {}".format, KEYS, VALUES),
    st.builds("{}!={}".format, KEYS, VALUES),
    st.builds("{} in ({})".format, KEYS, st.lists(VALUES, min_size=1).map(",".join)),
    st.builds("{} notin ( {} )".format, KEYS, st.lists(VALUES, min_size=1).map(" , ".join)),
    st.builds("{}>{}".format, KEYS, st.sampled_from("12")),
    KEYS,
    st.builds("!{}".format, KEYS),
)
LABELS = st.dictionaries(KEYS, VALUES)


@given(st.text(LETTERS, max_size=70))
@example("a" * 64)
@example("a" * 254 + "/b")
def test_agrees_with_the_rest_of_the_house_on_names(text: str) -> None:
    assert (not qualified_name_faults(text)) == is_qualified_name(text)
    assert (not label_value_faults(text)) == is_label_value(text)


@given(st.lists(TESTS, max_size=3), LABELS)
def test_agrees_with_the_rest_of_the_house_on_selectors(
    tests: list[str], labels: dict[str, str]
) -> None:
    text = ",".join(tests)
    assert parse_labels(text).matches(labels) == parse_label_query(text).matches(labels)


@given(st.text("ab=!,()<> in", max_size=12))
def test_reads_as_much_as_the_rest_of_the_house(text: str) -> None:
    try:
        selector = parse_labels(text)
        expected = parse_label_query(text)
    except (StatusError, SelectorError):  # the server is more generous, as the real one is
        return
    for labels in ({}, {"a": "b"}, {"a": "", "b": "a"}):
        assert selector.matches(labels) == expected.matches(labels)


def test_field_selectors_are_read_and_tested() -> None:
    server = InProcessServer()
    for name in ("a", "b", "c2"):
        server.create(PODS, name)
    server.verbs.bind("default", "b", {"metadata": {"name": "b"}, "target": {"name": "n"}})

    def predicate(text: str) -> list[str]:
        selector = parse_fields(PODS, text)
        return [item.name for item in server.store.list(PODS) if selector.matches(item)]

    assert predicate("spec.nodeName=") == ["a", "c2"]
    assert predicate("spec.nodeName!=,metadata.namespace=default") == ["b"]
    assert predicate("metadata.name!=a,spec.host==n") == ["b"]
    assert predicate("") == ["a", "b", "c2"]


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/pods", Target(PODS)),
        ("/api/v1/namespaces/x/pods", Target(PODS, "x")),
        ("/api/v1/namespaces/x/pods/p/status", Target(PODS, "x", "p", "status")),
        ("/api/v1/namespaces/x", Target(known("namespaces"), "", "x")),
        ("/api/v1/namespaces/x/status", Target(known("namespaces"), "", "x", "status")),
        ("/api/v1/namespaces/status/pods", Target(PODS, "status")),
        ("/apis/apps/v1/deployments", Target(known("deployments", "apps"))),
        ("/api/v1/nodes/n", Target(known("nodes"), "", "n")),
        ("/api/v1/pods/p", None),
        ("/api/v1/namespaces/x/nodes", None),
        ("/api/v1/namespaces/x/pods/p/log", None),
        ("/api/v1/namespaces/x/pods/p/status/y", None),
        ("/apis/apps/v1", None),
        ("/api/v1", None),
        ("/", None),
    ],
)
def test_knows_what_a_path_means(path: str, target: Target | None) -> None:
    assert parse_path(path) == target


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("", "whole"),
        ("*/*", "whole"),
        ("application/json", "whole"),
        ("application/vnd.kubernetes.protobuf,application/json", "whole"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", "whole"),
        (
            "application/json; as=PartialObjectMetadata; g=meta.k8s.io; v=v1",
            "PartialObjectMetadata",
        ),
    ],
)
def test_gives_the_first_form_there_is(header: str, form: str) -> None:
    assert accepted(header) == form


@pytest.mark.parametrize(
    "header",
    ["application/yaml", "application/vnd.kubernetes.protobuf", "application/json;as=Foo;v=v1"],
)
def test_says_so_if_there_is_no_such_form(header: str) -> None:
    with pytest.raises(StatusError) as caught:
        accepted(header)
    assert (caught.value.code, caught.value.reason) == (406, "NotAcceptable")

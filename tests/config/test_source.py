import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.config.source import child_path, dump_yaml, parse_yaml
from mooring.errors import ConfigError, Problem


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "f.yaml")
    assert caught.value.source == "f.yaml"
    return str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n", "---\n"])
def test_calls_an_empty_file_empty(text: str) -> None:
    assert refusal(text) == "f.yaml: the file is empty"


def test_gives_file_line_and_column_of_a_syntax_error() -> None:
    assert refusal("a: 1\nb: c: d\n") == "f.yaml:2:5: mapping values are not allowed here"
    assert refusal("a:\n\t- x\n").startswith("f.yaml:2:1: while scanning for the next token")
    assert "'\\t'" in refusal("a:\n\t- x\n")
    assert refusal("{").startswith("f.yaml:1:2: ")


def test_refuses_characters_that_yaml_forbids() -> None:
    assert refusal("a: \x00").startswith("f.yaml: unacceptable character")


def test_refuses_a_second_document() -> None:
    assert refusal("a: 1\n---\nb: 2\n") == "f.yaml:3: expected one document, found a second one"


def test_refuses_tags_that_would_build_objects() -> None:
    assert refusal("a: !!python/name:os.system").startswith("f.yaml:1:4: could not determine")


def test_refuses_a_value_that_contains_itself() -> None:
    assert refusal("a: &x [1, *x]") == "f.yaml:1: the anchored value contains itself"


def test_refuses_a_list_as_a_key() -> None:
    assert "unhashable key" in refusal("? [a]\n: b\n")


def test_reports_keys_that_are_set_twice_with_their_lines() -> None:
    text = "a: 1\nb:\n- c: 1\n  d: 2\n  c: 3\na: 4\nx/y: {p: 1, p: 2}\n"
    data, problems = parse_yaml(text)
    assert isinstance(data, dict)
    assert problems == [
        Problem("b[0].c", "duplicate key on line 5, first set on line 3"),
        Problem("a", "duplicate key on line 6, first set on line 1"),
        Problem("[x/y].p", "duplicate key on line 7, first set on line 7"),
    ]


def test_follows_anchors_and_merge_keys() -> None:
    text = "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: *b\n"
    data, problems = parse_yaml(text)
    assert problems == []
    assert data == {"base": {"x": 1, "y": 2}, "one": {"x": 1, "y": 3}, "two": {"x": 1, "y": 2}}


def test_reads_json_with_its_floats() -> None:
    data, _ = parse_yaml('{"a": [1, 2.5, 1e-3, 2E3], "b": {"c": null, "d": true}}')
    assert data == {"a": [1, 2.5, 0.001, 2000.0], "b": {"c": None, "d": True}}


def test_keeps_dates_as_text() -> None:
    assert parse_yaml("day: 2024-02-29")[0] == {"day": "2024-02-29"}


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [("", "a", "a"), ("a", "b", "a.b"), ("a", "x/y", "a[x/y]"), ("a", 1, "a[1]"), ("", "", "[]")],
)
def test_brackets_keys_that_would_be_misread_in_a_path(
    path: str, key: object, expected: str
) -> None:
    assert child_path(path, key) == expected


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "))
    | st.sampled_from(["1e3", "yes", "2024-02-29", "~", "0x1f", "- a", "a: b", "1.5e+3"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc/.-", min_size=1), inner),
    max_leaves=12,
)


@given(plain)
def test_reads_back_what_it_writes(data: object) -> None:
    assert parse_yaml(dump_yaml({"data": data}))[0] == {"data": data}


def test_writes_shared_values_out_in_full() -> None:
    shared = {"a": 1}
    assert dump_yaml({"x": shared, "y": shared}) == "x:\n  a: 1\ny:\n  a: 1\n"

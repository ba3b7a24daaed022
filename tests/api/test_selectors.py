import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api import (
    FrozenDict,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Selector,
    SelectorError,
    compile_node_selector,
    compile_term,
    parse_label_query,
)

KEYS = ("app", "tier", "zone")
VALUES = ("", "a", "b", "7")
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def node_test(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(
    *tests: NodeSelectorRequirement, fields: tuple[NodeSelectorRequirement, ...] = ()
) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=tests, match_fields=fields)


def selecting(*tests: LabelSelectorRequirement, **exact: str) -> Selector:
    return Selector.from_label_selector(
        LabelSelector(match_labels=FrozenDict(exact), match_expressions=tests)
    )


@given(labels)
def test_matches_nothing_without_a_selector_and_everything_with_an_empty_one(
    have: dict[str, str],
) -> None:
    assert not Selector.from_label_selector(None).matches(have)
    assert Selector.from_label_selector(LabelSelector()).matches(have)
    assert Selector.from_label_selector(LabelSelector()).is_empty
    assert not Selector.from_label_selector(None).is_empty


@given(labels)
def test_follows_the_four_operators(have: dict[str, str]) -> None:
    assert selecting(expression("app", "In", "a", "b")).matches(have) == (
        have.get("app") in ("a", "b")
    )
    assert selecting(expression("app", "NotIn", "a")).matches(have) == (have.get("app") != "a")
    assert selecting(expression("app", "Exists")).matches(have) == ("app" in have)
    assert selecting(expression("app", "DoesNotExist")).matches(have) == ("app" not in have)


@given(labels, labels)
def test_matches_a_map_when_it_is_contained(want: dict[str, str], have: dict[str, str]) -> None:
    contained = want.items() <= have.items()
    assert Selector.from_map(want).matches(have) == contained
    assert selecting(**want).matches(have) == contained
    assert selecting(**want) == Selector.from_map(want)
    assert hash(selecting(**want)) == hash(Selector.from_map(want))


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (expression("app", "Gt", "1"), '"Gt" is not a valid label selector operator'),
        (expression("app", "in", "a"), '"in" is not a valid label selector operator'),
        (
            expression("app", "In"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't",
        ),
        (
            expression("app", "Exists", "a"),
            'values: Invalid value: ["a"]: values set must be empty for exists',
        ),
        (expression("a b", "Exists"), 'key: Invalid value: "a b": name part must consist of'),
        (expression("Ex_ample/app", "Exists"), "prefix part a lowercase RFC 1123 subdomain"),
        (expression("a/b/c", "Exists"), "(e.g. 'example.com/MyName')"),
        (expression("/app", "Exists"), 'Invalid value: "/app": prefix part must be non-empty'),
        (
            expression(f"{'x.' * 127}y/app", "Exists"),
            "prefix part must be no more than 253 bytes",
        ),
        (expression("example.com/", "Exists"), "name part must be non-empty"),
        (expression("x" * 64, "Exists"), "name part must be no more than 63 bytes"),
        (
            expression("app", "In", "x y"),
            'values[0][app]: Invalid value: "x y": a valid label must be',
        ),
        (expression("app", "In", "x" * 64), "must be no more than 63 bytes"),
    ],
)
def test_refuses_selectors_that_make_no_sense(bad: LabelSelectorRequirement, problem: str) -> None:
    with pytest.raises(SelectorError) as caught:
        selecting(bad)
    assert problem in str(caught.value)


def test_stays_empty_handed_when_more_is_required_of_nothing() -> None:
    more = parse_label_query("app=a").requirements
    assert Selector.NOTHING.requiring(more) is Selector.NOTHING
    assert parse_label_query("tier").requiring(more) == parse_label_query("tier,app=a")


@pytest.mark.parametrize(
    ("query", "have", "expected"),
    [
        ("", {}, True),
        ("app=a", {"app": "a"}, True),
        ("app==a", {"app": "b"}, False),
        ("app!=a", {}, True),
        (" app = a , tier != b ", {"app": "a", "tier": "a"}, True),
        ("app in (a, b),tier notin (z)", {"app": "b"}, True),
        ("app in (a,b)", {"app": "c"}, False),
        ("app,!tier", {"app": ""}, True),
        ("app,!tier", {"app": "", "tier": "x"}, False),
        ("app=", {"app": ""}, True),
        ("zone > 3", {"zone": "4"}, True),
        ("zone<3", {"zone": "4"}, False),
        ("plugin", {"plugin": "x"}, True),
        ("example.com/app=a", {"example.com/app": "a"}, True),
    ],
)
def test_reads_label_queries(query: str, have: dict[str, str], expected: bool) -> None:
    assert parse_label_query(query).matches(have) is expected


@pytest.mark.parametrize(
    "query", ["a=b=c", ",", "a,", "a in b", "in (x)", "!", "ain(x)", "a in (x", "a b"]
)
def test_refuses_broken_label_queries(query: str) -> None:
    with pytest.raises(SelectorError):
        parse_label_query(query)


@pytest.mark.parametrize(
    "query", ["a=b", "c!=d", "e in (x,y)", "f notin (y,z)", "g", "!h", "i > 3,j < 4"]
)
def test_writes_the_queries_it_reads(query: str) -> None:
    assert str(parse_label_query(query)) == query
    assert str(Selector.NOTHING) == "<none>"


@pytest.mark.parametrize(
    ("operator", "bound", "value", "expected"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "five", False),
        ("Lt", "5", None, False),
        ("Gt", "-5", "-4", True),
        ("Gt", "5", "9223372036854775808", False),
        ("Gt", "5", "6" * 100, False),
        ("Lt", "5", "1_0", False),
    ],
)
def test_compares_integers(operator: str, bound: str, value: str | None, expected: bool) -> None:
    # A negative bound is no label value, so upstream refuses it too.
    compiled = compile_term(term(node_test("cores", operator, bound)))
    if bound.startswith("-"):
        assert compiled.errors[0].startswith(
            'matchExpressions[0].values[0][cores]: Invalid value: "-5"'
        )
        return
    assert compiled.requirements[0].matches_value(value) is expected


def test_ors_terms_and_ands_what_is_in_them() -> None:
    matcher = compile_node_selector(
        NodeSelector(
            node_selector_terms=(
                term(node_test("zone", "In", "a"), node_test("app", "Exists")),
                term(fields=(node_test("metadata.name", "In", "n1"),)),
            )
        )
    )
    assert matcher.matches({"zone": "a", "app": ""}, "n0")
    assert not matcher.matches({"zone": "a"}, "n0")
    assert matcher.matches({}, "n1")
    assert matcher.errors == ()
    assert matcher.terms[1].names_in == ("n1",)


def test_matches_no_node_without_terms_or_with_an_empty_one() -> None:
    assert not compile_node_selector(NodeSelector()).matches({"zone": "a"}, "n")
    assert not compile_node_selector(NodeSelector(node_selector_terms=(term(),))).matches({}, "n")
    assert compile_term(term()).is_empty


def test_combines_label_and_name_tests_in_one_term() -> None:
    compiled = compile_term(
        term(node_test("zone", "NotIn", "a"), fields=(node_test("metadata.name", "NotIn", "n1"),))
    )
    assert compiled.matches({}, "n2")
    assert not compiled.matches({}, "n1")
    assert not compiled.matches({"zone": "a"}, "n2")


def test_needs_the_name_to_equal_every_listed_one() -> None:
    both = compile_term(
        term(
            fields=(node_test("metadata.name", "In", "n1"), node_test("metadata.name", "In", "n2"))
        )
    )
    assert not both.matches({}, "n1")


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (term(node_test("cores", "Gt", "many")), "operators, the value must be an integer"),
        (term(node_test("cores", "Gt", "1", "2")), "operators, exactly one value is required"),
        (
            term(node_test("cores", "Near", "1")),
            'operator: Unsupported value: "Near": supported values: "In"',
        ),
        (term(fields=(node_test("metadata.uid", "In", "x"),)), 'supported values: "metadata.name"'),
        (term(fields=(node_test("metadata.name", "Exists"),)), 'supported values: "In", "NotIn"'),
        (term(fields=(node_test("metadata.name", "In", "a", "b"),)), "must have one element"),
    ],
)
def test_skips_a_broken_term_and_still_tries_the_others(
    broken: NodeSelectorTerm, problem: str
) -> None:
    fine = term(node_test("zone", "In", "a"))
    matcher = compile_node_selector(NodeSelector(node_selector_terms=(broken, fine)))
    assert matcher.matches({"zone": "a", "cores": "64"}, "a")
    assert not matcher.matches({"cores": "64"}, "a")
    assert len(matcher.errors) == 1
    assert problem in matcher.errors[0]

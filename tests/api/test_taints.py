import pytest

from mooring.api import Taint, Toleration, find_untolerated, parse_taint, tolerates

GPU = Taint(key="gpu", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="gpu", value="yes", effect="NoSchedule"), True),
        (Toleration(key="gpu", operator="Equal", value="yes"), True),
        (Toleration(key="gpu", operator="Equal", value="no"), False),
        (Toleration(key="gpu", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(key="tpu", operator="Exists"), False),
        (Toleration(key="gpu"), False),
        (Toleration(key="gpu", operator="Gt", value="1"), False),
        (Toleration(key="gpu", operator="exists"), False),
    ],
)
def test_tolerates_by_effect_key_and_operator(toleration: Toleration, expected: bool) -> None:
    assert tolerates(toleration, GPU) is expected


@pytest.mark.parametrize(
    ("found", "operator", "limit", "expected"),
    [
        ("4", "Gt", "3", True),
        ("3", "Gt", "3", False),
        ("2", "Gt", "3", False),
        ("2", "Lt", "3", True),
        ("3", "Lt", "3", False),
        ("10", "Lt", "9", False),
        ("-5", "Lt", "0", True),
        ("", "Lt", "3", False),
        ("2", "Lt", "", False),
        ("02", "Lt", "3", False),
        ("+2", "Lt", "3", False),
        ("-0", "Lt", "3", False),
        ("2.0", "Lt", "3", False),
        ("\u0662", "Lt", "3", False),
        ("-9223372036854775808", "Lt", "9223372036854775807", True),
        ("0", "Lt", "9223372036854775808", False),
        ("-9223372036854775809", "Lt", "0", False),
    ],
)
def test_compares_numbers_where_that_is_turned_on(
    found: str, operator: str, limit: str, expected: bool
) -> None:
    taint = Taint(key="level", value=found, effect="NoSchedule")
    toleration = Toleration(key="level", operator=operator, value=limit)
    assert tolerates(toleration, taint, compares=True) is expected
    assert not tolerates(toleration, taint)
    assert (find_untolerated((taint,), (toleration,), compares=True) is None) is expected


def test_finds_the_first_taint_nobody_tolerates() -> None:
    soft = Taint(key="soft", effect="PreferNoSchedule")
    gone = Taint(key="gone", effect="NoExecute")
    accepts_gpu = (Toleration(key="gpu", operator="Exists"),)
    assert find_untolerated((soft, GPU, gone), ()) is GPU
    assert find_untolerated((soft, GPU, gone), accepts_gpu) is gone
    assert find_untolerated((soft, GPU), accepts_gpu) is None
    assert find_untolerated((GPU, soft), (), ("PreferNoSchedule",)) is soft


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        ("gpu=yes:NoSchedule", GPU),
        ("gpu:NoExecute", Taint(key="gpu", effect="NoExecute")),
        ("gpu=:NoExecute", Taint(key="gpu", effect="NoExecute")),
        ("a.io/b=c:PreferNoSchedule", Taint(key="a.io/b", value="c", effect="PreferNoSchedule")),
    ],
)
def test_reads_the_notation_of_kubectl(text: str, taint: Taint) -> None:
    assert parse_taint(text) == taint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gpu", "expected key=value:Effect"),
        (":NoSchedule", "expected key=value:Effect"),
        ("gpu=yes:Never", "effect must be one of NoSchedule, PreferNoSchedule, NoExecute"),
        ("g pu=yes:NoSchedule", "'g pu' is not a valid key"),
        ("gpu=y s:NoSchedule", "'y s' is not a valid value"),
    ],
)
def test_says_what_is_wrong_with_a_taint(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        parse_taint(text)
    assert repr(text) in str(caught.value)

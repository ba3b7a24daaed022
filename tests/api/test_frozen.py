import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api import EMPTY, FrozenDict

MUTATIONS: dict[str, Callable[[Any], object]] = {
    "setitem": lambda d: d.__setitem__("a", "2"),
    "delitem": lambda d: d.__delitem__("a"),
    "update": lambda d: d.update(a="2"),
    "pop": lambda d: d.pop("a"),
    "popitem": lambda d: d.popitem(),
    "clear": lambda d: d.clear(),
    "setdefault": lambda d: d.setdefault("b", "2"),
    "ior": lambda d: d.__ior__({"b": "2"}),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_refuses_to_change(mutation: str) -> None:
    frozen = FrozenDict({"a": "1"})
    with pytest.raises(TypeError, match="is read-only"):
        MUTATIONS[mutation](frozen)
    assert frozen == {"a": "1"}


@given(st.dictionaries(st.text(), st.text()))
def test_equals_the_dict_it_was_built_from(items: dict[str, str]) -> None:
    frozen = FrozenDict(items)
    assert frozen == items
    assert hash(frozen) == hash(FrozenDict(dict(reversed(items.items()))))


@given(st.dictionaries(st.text(), st.text()))
def test_survives_pickle_and_copy(items: dict[str, str]) -> None:
    frozen = FrozenDict(items)
    for twin in (pickle.loads(pickle.dumps(frozen)), copy.copy(frozen), copy.deepcopy(frozen)):
        assert twin == frozen
        assert type(twin) is FrozenDict


def test_empty_holds_nothing() -> None:
    assert EMPTY == {}

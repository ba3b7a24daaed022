"""Payloads: read as written, in any case, and with nothing lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.codec import DecodeError
from mooring.extender.wire import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
    MetaPod,
    MetaVictims,
    NodeList,
    Victims,
    decode,
    encode,
    name_of,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(text, values, max_size=4)
raws = objects.map(lambda value: msgspec.Raw(json.dumps(value, indent=1).encode()))
reasons = st.none() | st.dictionaries(text, text, max_size=3)
counts = st.integers(-(2**63), 2**63 - 1)

metas = st.builds(
    MetaVictims, st.none() | st.lists(st.builds(MetaPod, text), max_size=3).map(tuple), counts
)
node_lists = st.builds(NodeList, st.just({}), st.none() | st.lists(raws, max_size=3).map(tuple))
names = st.none() | st.lists(text, max_size=3).map(tuple)

PAYLOADS: dict[type[Any], st.SearchStrategy[Any]] = {
    ExtenderArgs: st.builds(ExtenderArgs, raws, st.none() | node_lists, names),
    ExtenderFilterResult: st.builds(
        ExtenderFilterResult, st.none() | node_lists, names, reasons, reasons, text
    ),
    ExtenderPreemptionArgs: st.builds(
        ExtenderPreemptionArgs,
        raws,
        st.none()
        | st.dictionaries(
            text, st.builds(Victims, st.lists(raws, max_size=2).map(tuple), counts), max_size=2
        ),
        st.none() | st.dictionaries(text, metas, max_size=2),
    ),
    ExtenderPreemptionResult: st.builds(
        ExtenderPreemptionResult, st.none() | st.dictionaries(text, metas, max_size=3)
    ),
    ExtenderBindingArgs: st.builds(ExtenderBindingArgs, text, text, text, text),
    ExtenderBindingResult: st.builds(ExtenderBindingResult, text),
}
either = st.sampled_from(list(PAYLOADS)).flatmap(
    lambda kind: PAYLOADS[kind].map(lambda value: (kind, value))
)


@given(either)
def test_reads_what_it_writes_with_every_byte_of_objects(payload: tuple[type[Any], Any]) -> None:
    kind, value = payload
    assert decode(encode(value), kind) == value


@given(either, st.sampled_from([str.lower, str.upper, str.swapcase, str.title]))
def test_reads_names_in_any_case(
    payload: tuple[type[Any], Any], spelt: Callable[[str], str]
) -> None:
    kind, value = payload
    body = {spelt(key): member for key, member in json.loads(encode(value)).items()}
    read = decode(json.dumps(body).encode(), kind)
    assert json.loads(encode(read)) == json.loads(encode(value))


def test_writes_what_is_absent_as_go_does() -> None:
    assert json.loads(encode(ExtenderFilterResult(node_names=()))) == {
        "Nodes": None,
        "NodeNames": [],
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": None,
        "Error": "",
    }
    assert encode((HostPriority("a", 3),)) == b'[{"Host":"a","Score":3}]'
    args = ExtenderBindingArgs("p", "ns", "u", "n")
    assert encode(args) == b'{"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n"}'


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (b"", ExtenderArgs, "not valid JSON"),
        (b"{}", ExtenderArgs, "Pod is missing"),
        (b'{"Pod":{},"Nodes":{"items":3}}', ExtenderArgs, "$.Nodes.items"),
        (b'{"Error":1}', ExtenderFilterResult, "$.Error"),
        (b'{"FailedNodes":{"a":1}}', ExtenderFilterResult, "$.FailedNodes['a']"),
        (b'{"NodeNameToMetaVictims":{"a":[]}}', ExtenderPreemptionResult, "['a']"),
    ],
)
def test_says_where_a_payload_is_wrong(body: bytes, kind: type[Any], why: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(body, kind)
    assert why in str(caught.value)


def test_leaves_out_what_newer_schedulers_may_add() -> None:
    found = decode(b'{"Pod":{"x":1},"NodeNames":["a"],"Later":{"y":2}}', ExtenderArgs)
    assert (bytes(found.pod), found.node_names, found.nodes) == (b'{"x":1}', ("a",), None)


def test_finds_the_name_of_a_node_it_has_not_read() -> None:
    assert name_of(msgspec.Raw(b'{"spec":{"x":[1]},"metadata":{"uid":"u","name":"n"}}')) == "n"

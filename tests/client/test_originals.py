from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.client.stage import Stage

from mooring.api.codec import decode
from mooring.api.core import Pod
from mooring.client.informer import Informer
from mooring.client.originals import Originals


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def informed(stage: Stage, originals: Originals[Pod]) -> Informer[Pod]:
    informer = Informer(
        stage.client,
        Pod,
        on_put=lambda value: None,
        on_remove=lambda value: None,
        originals=originals,
        rng=stage.rng,
    )
    stage.start(informer.run())
    return informer


def raw(value: dict[str, Any]) -> tuple[Pod, msgspec.Raw]:
    data = json.dumps(value).encode()
    return decode(data, Pod), msgspec.Raw(data)


def test_hands_out_all_that_the_server_said_except_what_is_only_its_own() -> None:
    originals: Originals[Pod] = Originals()
    meta = {"name": "a", "uid": "1", "managedFields": [{"manager": "kubectl"}]}
    spec = {"containers": [{"name": "c", "image": "i", "command": ["run"]}], "novelty": {"x": 1}}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    originals.put(*raw(whole))
    expected = {"metadata": {"name": "a", "uid": "1"}, "spec": spec}
    for _ in range(2):
        assert json.loads(originals.get("1") or b"") == expected
    assert originals.get("2") is None


@pytest.mark.parametrize("novelty", [b'"\xff"', b"1e999"])
def test_hands_out_nothing_that_cannot_be_read(novelty: bytes) -> None:
    originals: Originals[Pod] = Originals()
    data = b'{"metadata":{"name":"a","uid":"1"},"novelty":' + novelty + b"}"
    originals.put(decode(data, Pod), msgspec.Raw(data))
    assert originals.get("1") is None


def test_hands_out_an_object_without_metadata() -> None:
    originals: Originals[Pod] = Originals()
    for data in (b'{"spec":{}}', b'{"metadata":null,"spec":{}}'):
        originals.put(decode(data, Pod), msgspec.Raw(data))
        assert originals.get("") == data


def test_follows_the_informer(stage: Stage) -> None:
    originals: Originals[Pod] = Originals()
    stage.server.put(Pod, "a")
    stage.server.put(Pod, "b")
    informer = informed(stage, originals)
    assert len(originals) == 2
    uid = stage.server.uid(Pod, "a")
    assert uid is not None
    stage.server.put(Pod, "a", spec={"nodeName": "n"})
    stage.settle()
    assert json.loads(originals.get(uid) or b"")["spec"] == {"nodeName": "n"}
    stage.server.delete(Pod, "a")
    stage.settle()
    assert originals.get(uid) is None
    assert len(originals) == len(informer) == 1


def test_keeps_only_what_is_wanted(stage: Stage) -> None:
    originals: Originals[Pod] = Originals(lambda pod: not pod.spec.node_name)
    stage.server.put(Pod, "a")
    informed(stage, originals)
    assert len(originals) == 1
    stage.server.put(Pod, "a", spec={"nodeName": "n"})
    stage.settle()
    assert len(originals) == 0


def test_forgets_what_was_deleted_in_a_gap_of_the_watch(stage: Stage) -> None:
    originals: Originals[Pod] = Originals()
    stage.server.put(Pod, "a")
    informed(stage, originals)
    stage.server.end()
    stage.server.delete(Pod, "a")
    stage.server.compact()
    stage.advance(60.0)
    assert len(originals) == 0

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.client.client_rig import ClientRig

from mooring.api.codec import decode
from mooring.api.core import Pod
from mooring.client.informer import Informer
from mooring.client.raw_objects import RawObjects


def informed(rig: ClientRig, raw_objects: RawObjects[Pod]) -> Informer[Pod]:
    informer = Informer(
        rig.client,
        Pod,
        on_put=lambda value: None,
        on_remove=lambda value: None,
        raw_objects=raw_objects,
        rng=rig.rng,
    )
    rig.start(informer.run())
    return informer


def raw(value: dict[str, Any]) -> tuple[Pod, msgspec.Raw]:
    data = json.dumps(value).encode()
    return decode(data, Pod), msgspec.Raw(data)


def test_hands_out_all_that_the_server_said_except_what_is_only_its_own() -> None:
    raw_objects: RawObjects[Pod] = RawObjects()
    meta = {"name": "a", "uid": "1", "managedFields": [{"manager": "kubectl"}]}
    spec = {"containers": [{"name": "c", "image": "i", "command": ["run"]}], "novelty": {"x": 1}}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    raw_objects.put(*raw(whole))
    expected = {"metadata": {"name": "a", "uid": "1"}, "spec": spec}
    for _ in range(2):
        assert json.loads(raw_objects.get("1") or b"") == expected
    assert raw_objects.get("2") is None


@pytest.mark.parametrize("novelty", [b'"\xff"', b"1e999"])
def test_hands_out_nothing_that_cannot_be_read(novelty: bytes) -> None:
    raw_objects: RawObjects[Pod] = RawObjects()
    data = b'{"metadata":{"name":"a","uid":"1"},"novelty":' + novelty + b"}"
    raw_objects.put(decode(data, Pod), msgspec.Raw(data))
    assert raw_objects.get("1") is None


def test_hands_out_an_object_without_metadata() -> None:
    raw_objects: RawObjects[Pod] = RawObjects()
    for data in (b'{"spec":{}}', b'{"metadata":null,"spec":{}}'):
        raw_objects.put(decode(data, Pod), msgspec.Raw(data))
        assert raw_objects.get("") == data


def test_follows_the_informer(rig: ClientRig) -> None:
    raw_objects: RawObjects[Pod] = RawObjects()
    rig.server.put(Pod, "a")
    rig.server.put(Pod, "b")
    informer = informed(rig, raw_objects)
    assert len(raw_objects) == 2
    uid = rig.server.uid(Pod, "a")
    assert uid is not None
    rig.server.put(Pod, "a", spec={"nodeName": "n"})
    rig.settle()
    assert json.loads(raw_objects.get(uid) or b"")["spec"] == {"nodeName": "n"}
    rig.server.delete(Pod, "a")
    rig.settle()
    assert raw_objects.get(uid) is None
    assert len(raw_objects) == len(informer) == 1


def test_keeps_only_what_is_wanted(rig: ClientRig) -> None:
    raw_objects: RawObjects[Pod] = RawObjects(lambda pod: not pod.spec.node_name)
    rig.server.put(Pod, "a")
    informed(rig, raw_objects)
    assert len(raw_objects) == 1
    rig.server.put(Pod, "a", spec={"nodeName": "n"})
    rig.settle()
    assert len(raw_objects) == 0


def test_forgets_what_was_deleted_in_a_gap_of_the_watch(rig: ClientRig) -> None:
    raw_objects: RawObjects[Pod] = RawObjects()
    rig.server.put(Pod, "a")
    informed(rig, raw_objects)
    rig.server.end()
    rig.server.delete(Pod, "a")
    rig.server.store.compact()
    rig.advance(60.0)
    assert len(raw_objects) == 0

"""Informers with selectors, and random writes to what they watch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.cluster.apiserver.compared_requests import Object, pod
from tests.cluster.apiserver.in_process_server import NAMESPACES, PODS, InProcessServer

from mooring.api.codec import decode
from mooring.api.core import Pod
from mooring.client.client import ApiClient
from mooring.client.informer import Informer
from mooring.client.transport import Transport
from mooring.cluster.apiserver.field_selectors import parse_fields
from mooring.cluster.apiserver.label_selectors import parse_labels
from mooring.cluster.apiserver.options import SelectionPredicate

APPS = ("x", "y", "z")
NODES = ("n1", "n2")
NAMESPACED = ("default", "one", "two")
LABELS = ("", "app=x", "app!=x", "app in (x,y)", "!none", "app notin (z)")
FIELDS = ("", "spec.nodeName=", "spec.nodeName!=", "metadata.name!=p3")


class InformerMirror:
    """An informer with selectors, and a mirror of what its handlers heard."""

    def __init__(
        self,
        server: InProcessServer,
        transport: Transport,
        labels: str = "",
        fields: str = "",
        page_size: int = 5,
    ) -> None:
        self.heard: dict[str, Pod] = {}
        self.wrong: list[str] = []  # raised, it would only be logged
        self._chosen = SelectionPredicate("", parse_labels(labels), parse_fields(PODS, fields))
        self._desk = server
        self.informer: Informer[Pod] = Informer(
            ApiClient(transport),
            Pod,
            on_put=self._put,
            on_remove=self._remove,
            labels=labels,
            fields=fields,
            page_size=page_size,
            rng=random.Random(5),
        )

    def _put(self, value: Pod) -> None:
        known = self.heard.get(value.key)
        if known is not None and known.uid != value.uid:
            self.wrong.append(f"the end of {value.key} was not told")
        self.heard[value.key] = value

    def _remove(self, value: Pod) -> None:
        if self.heard.pop(value.key, None) != value:
            self.wrong.append(f"the end of {value.key} was told with a state nobody heard of")

    def is_true(self) -> bool:
        """Whether it has what there is."""
        return {value.key: value for value in self.informer} == self._there()

    def assert_true(self) -> None:
        there = self._there()
        assert {value.key: value for value in self.informer} == there
        assert self.heard == there
        assert (self.wrong, self.informer.problem) == ([], "")

    def _there(self) -> dict[str, Pod]:
        items = [item for item in self._desk.store.list(PODS) if self._chosen.matches(item)]
        return {value.key: value for value in (decode(item.raw, Pod) for item in items)}


def random_mirror(
    server: InProcessServer, transport: Transport, rng: random.Random
) -> InformerMirror:
    """With random selectors."""
    return InformerMirror(
        server,
        transport,
        labels=rng.choice(LABELS),
        fields=rng.choice(FIELDS),
        page_size=rng.choice([1, 7, 500]),
    )


class RandomWrites:
    """Things to do to the pods of a server."""

    def __init__(self, server: InProcessServer) -> None:
        self.server = server

    def make_namespaces(self) -> None:
        for namespace in NAMESPACED[1:]:
            self.server.create(NAMESPACES, namespace)

    def anything(self, rng: random.Random) -> None:
        """A random write, or none if there is nothing to write to."""
        name, namespace = f"p{rng.randrange(60)}", rng.choice(NAMESPACED)
        match rng.randrange(10):
            case 0 | 1:
                self.delete(name, namespace)
            case 2 | 3:
                self.bind(name, rng.choice(NODES), namespace)
            case _:
                self.put(name, rng.choice(APPS), namespace)

    def put(self, name: str, app: str, namespace: str = "default") -> None:
        if self.server.store.get(PODS, namespace, name) is None:
            self.server.verbs.create(PODS, pod(name, labels={"app": app}), namespace=namespace)
        else:
            self.modify(
                namespace, name, lambda value: value["metadata"].update(labels={"app": app})
            )

    def bind(self, name: str, node: str, namespace: str = "default") -> None:
        item = self.server.store.get(PODS, namespace, name)
        if item is not None and not item.fields["spec.nodeName"]:
            binding = {"metadata": {"name": name}, "target": {"name": node}}
            self.server.verbs.bind(namespace, name, binding)

    def delete(self, name: str, namespace: str = "default") -> None:
        if self.server.store.get(PODS, namespace, name) is not None:
            self.server.verbs.delete(PODS, namespace, name, grace=0)

    def modify(self, namespace: str, name: str, change: Callable[[Object], Any]) -> None:
        def changed(value: Object) -> Object:
            change(value)
            return value

        self.server.verbs.modify(PODS, namespace, name, changed)

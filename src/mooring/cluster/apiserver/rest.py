"""Requests for objects: the path says of what, the method says what to do, the query says how."""

from __future__ import annotations

import time
from collections.abc import Callable

from mooring.cluster.apiserver.calls import Call, Reply, Watching
from mooring.cluster.apiserver.failures import no_such_method, not_found
from mooring.cluster.apiserver.listing import find, too_large
from mooring.cluster.apiserver.options import list_options, read_version
from mooring.cluster.apiserver.paths import Target
from mooring.cluster.apiserver.store import Store
from mooring.cluster.apiserver.tables.showing import Shown, encode
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.apiserver.watching import watch
from mooring.cluster.apiserver.writing import Writing


class Rest:
    """Answers requests for objects of all kinds; raises what is to be told instead."""

    def __init__(self, verbs: Verbs, *, clock: Callable[[], float] = time.time) -> None:
        self._verbs = verbs
        self._store: Store = verbs.store
        self._clock = clock
        self._writing = Writing(verbs, clock)

    def answer(self, target: Target, call: Call) -> Reply | Watching:
        match target.subresource:
            case "binding" | "eviction":
                return self._writing.post_to_pod(target, call)
            case "token":
                raise no_such_method()
        if not target.name:
            return self._answer_all(target, call)
        match call.method:
            case "GET" | "HEAD":
                return self._get(target, call)
            case "PUT":
                return self._writing.put(target, call)
            case "PATCH":
                return self._writing.patch(target, call)
            case "DELETE" if not target.subresource:
                return self._writing.delete(target, call)
        raise no_such_method()

    def _answer_all(self, target: Target, call: Call) -> Reply | Watching:
        is_one_place = bool(target.namespace) or not target.resource.namespaced
        match call.method:
            case "GET" | "HEAD":
                return self._list(target, call)
            case "POST" if is_one_place:
                return self._writing.create(target, call)
            case "DELETE" if is_one_place:
                return self._writing.delete_all(target, call)
        raise no_such_method()

    def _get(self, target: Target, call: Call) -> Reply:
        resource = target.resource
        shown = Shown(call, resource, self._clock)
        wanted = call.query.get("resourceVersion", "")
        if wanted.isdecimal() and int(wanted) > self._store.version:
            raise too_large(int(wanted), self._store.version)
        if target.subresource == "scale":
            scale = self._verbs.get(resource, target.namespace, target.name, subresource="scale")
            return Reply(body=encode(scale))
        item = self._store.get(resource, target.namespace, target.name)
        if item is None:
            raise not_found(resource, target.name)
        return shown.one(item)

    def _list(self, target: Target, call: Call) -> Reply | Watching:
        resource = target.resource
        options = list_options(resource, target.namespace, call.query)
        shown = Shown(call, resource, self._clock, is_list=True)
        if not options.is_watch:
            return shown.many(find(self._store, resource, options))
        version = read_version(options)
        return Watching(chunks=watch(self._store, resource, options, version, shown.frames()))

"""The one request to the outside."""

import asyncio

from mooring.errors import ApiError
from mooring.framework import OK, CycleState, Status
from mooring.plugins.defaultbinder import DefaultBinder
from mooring.testing.build import StubHandle, build
from mooring.testing.builders import pod


def test_binds_the_pod_it_was_asked_to_and_no_namesake() -> None:
    handle = StubHandle()
    binder = build(DefaultBinder, handle=handle)
    web = pod("web", namespace="shop", uid="u-1")
    assert asyncio.run(binder.bind(CycleState(), web, "node-7")) is OK
    (binding,) = handle.client.bindings
    assert (binding.namespace, binding.name, binding.uid) == ("shop", "web", "u-1")
    assert (binding.target.kind, binding.target.name) == ("Node", "node-7")


def test_reports_what_the_server_said() -> None:
    handle = StubHandle()
    failure = handle.client.failure = ApiError('pods "web" not found')
    binder = build(DefaultBinder, handle=handle)
    status = asyncio.run(binder.bind(CycleState(), pod("web"), "n"))
    assert status == Status.error('pods "web" not found', cause=failure)
    assert handle.client.bindings == []

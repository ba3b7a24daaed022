"""The question to a user's function."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unshowable import Parting

import mooring.framework as fw
from mooring.controller import NotNow, controller
from mooring.controller.chooser import Choice, Choose, NodeChooser
from mooring.errors import PluginError
from mooring.runtime.guard import Watchdog
from mooring.testing import pod
from mooring.testing.sandbox import Sandbox


@controller(scheduler_name="nobody")
def _never_asked(pod: fw.Pod, nodes: fw.Nodes) -> Choice:
    return None


def ask(choose: Choose, budget: float = 5.0) -> str | NotNow:
    with Sandbox(controllers=False, kubelets=False) as cluster:
        cluster.add_nodes(2)
        running = cluster.start_controller(_never_asked)
        chooser = NodeChooser(choose, budget=budget)
        with Watchdog(chooser.guard):
            asking = cluster.loop.create_task(chooser.ask(pod("p"), running.runner.view.nodes))
            cluster.advance(60)
        return asking.result()


def _first(pod: fw.Pod, nodes: fw.Nodes) -> Choice:
    return nodes[0]


class _Careful:
    """A function may be an object, too."""

    async def __call__(self, pod: fw.Pod, nodes: fw.Nodes) -> Choice:
        await asyncio.sleep(1)
        return nodes.names[1]


def test_takes_a_node_for_its_name() -> None:
    assert ask(_first) == "node-0"


def test_takes_whatever_can_be_called() -> None:
    assert ask(_Careful()) == "node-1"
    assert ask(lambda pod, nodes: None) == NotNow()
    assert ask(lambda pod, nodes: NotNow("later")) == NotNow("later")


def test_interrupts_what_never_returns() -> None:
    def forever(pod: fw.Pod, nodes: fw.Nodes) -> Choice:
        while True:
            len(nodes)

    with pytest.raises(PluginError, match=r"took longer than its budget of 0\.2s"):
        ask(forever, budget=0.2)


def test_cuts_reasons_and_takes_no_others() -> None:
    answer = ask(lambda pod, nodes: NotNow("x" * 20_000_000))
    assert isinstance(answer, NotNow)
    assert answer.reason == "x" * 3836 + " ..."
    reason: Any = ValueError("no text")
    with pytest.raises(PluginError, match="expected the name of a node, or None"):
        ask(lambda pod, nodes: NotNow(reason))


def test_survives_an_exception_that_ends_the_process_when_it_is_shown() -> None:
    def choose(pod: fw.Pod, nodes: fw.Nodes) -> Choice:
        raise Parting

    with pytest.raises(PluginError, match="Parting: <Parting that can't be shown>"):
        ask(choose)


def test_does_not_mistake_what_the_function_raises_for_the_end() -> None:
    async def confused(pod: fw.Pod, nodes: fw.Nodes) -> Choice:
        raise asyncio.CancelledError

    with pytest.raises(PluginError, match="CancelledError"):
        ask(confused)

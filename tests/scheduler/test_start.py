"""What a scheduler says about its plugins when it starts, and which it refuses."""

from __future__ import annotations

import logging

import pytest

import mooring.framework as fw
from mooring.errors import ConfigError
from mooring.framework.plugin import Base
from mooring.testing.sandbox import Sandbox

TEXT = "asked about every node for every pod, because they declare no depends_on"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false, resourceName: kube-scheduler}
profiles:
  - schedulerName: default-scheduler
    plugins: {multiPoint: {enabled: [%s]}}
  - schedulerName: other
    plugins: {multiPoint: {enabled: [%s]}}
"""


class ByName(fw.Score):
    """Declares nothing."""

    name = "ByName"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return len(node.name)


class Headroom(fw.Filter):
    """Declares nothing, either."""

    name = "Headroom"
    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK


class Declared(ByName):
    """Declares what it depends on."""

    name = "Declared"
    depends_on = fw.NODE


class Elsewhere(fw.PostBind):
    """Takes no part in decisions."""

    name = "Elsewhere"

    async def post_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        return None


class Outdated(ByName):
    """Of an earlier version."""

    name = "Outdated"
    scope = "node"
    by_extremes = True


class Stamped(Headroom):
    """Of an earlier version, too."""

    name = "Stamped"

    def stamp(self, pod: fw.Pod) -> None:
        return None


def start(*plugins: type[Base]) -> None:
    """As `mooring run` does, with informers on an API server."""
    names = ", ".join(f"{{name: {plugin.name}}}" for plugin in plugins)
    with Sandbox() as cluster:
        cluster.add_nodes(1)
        cluster.start_scheduler(config=CONFIG % (names, names), plugins=plugins)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(record)["plugins"] for record in caplog.records if record.message == TEXT]


def test_one_line_names_the_plugins_that_are_asked_for_every_pod(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    start(Headroom, ByName, Declared, Elsewhere)
    assert said(caplog) == ["ByName, Headroom"]


def test_says_nothing_if_all_plugins_declare_what_they_depend_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    start(Declared, Elsewhere)
    assert said(caplog) == []


def test_does_not_start_with_plugins_of_an_earlier_version() -> None:
    with pytest.raises(ConfigError) as caught:
        start(Outdated, Stamped)
    text = str(caught.value)
    for words in (
        "Outdated has `scope`: write `depends_on = fw.NODE` or `fw.NODE_AND_PODS`",
        "Outdated has `by_extremes`: write `normalizer = fw.BEST_IS_100`",
        "Stamped has `stamp`: write `cache_key(pod)`",
    ):
        assert words in text

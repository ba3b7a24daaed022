import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs
from tests.plugins.volumes.storage import claim, user, volume

from mooring import config as cfg
from mooring.api import core
from mooring.api.meta import Condition
from mooring.cache.pods import Pod
from mooring.framework.handle import Client
from mooring.lens.shadow.comparison import Comparison
from mooring.lens.shadow.report import ShadowReport
from mooring.lens.shadow.shadow import Shadow, Silent, shadow_config
from mooring.observe.metrics import Metrics
from mooring.runtime.clock import SystemClock
from mooring.scheduler.scheduler import Scheduler
from mooring.testing import node, pod


class NoClient:
    """Fails if anything is written."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a shadow has called {name}")


def compare(
    tell: Callable[[Shadow], None], config: cfg.KubeSchedulerConfiguration | None = None
) -> list[Comparison]:
    """What a shadow finds in what it is told."""
    config = config or cfg.default_configuration()
    found: list[Comparison] = []

    async def go() -> None:
        client: Client = NoClient()
        scheduler = Scheduler(
            shadow_config(config), client=client, recorder=Silent(), clock=SystemClock()
        )
        shadow = Shadow(scheduler, config, found.append, settle=0.01)
        tell(shadow)
        running = asyncio.create_task(shadow.run())
        while len(shadow):  # noqa: ASYNC110 - the product has no need of an event
            await asyncio.sleep(0.005)
        shadow.stop()
        await running

    asyncio.run(go())
    return found


def scheduled(shadow: Shadow, what: Pod, on: str) -> None:
    shadow.put_pod(what.api)
    shadow.put_pod(structs.replace(what.api, spec=structs.replace(what.api.spec, node_name=on)))


def refused(what: Pod) -> core.Pod:
    told = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="0/1")
    status = structs.replace(what.api.status, conditions=(told,))
    return structs.replace(what.api, status=status)


def one(found: list[Comparison]) -> Comparison:
    assert len(found) == 1, found
    return found[0]


def test_the_same_node_is_equal() -> None:
    def tell(shadow: Shadow) -> None:
        shadow.put_node(node("a", cpu="8").api)
        shadow.put_node(node("b", cpu="2").api)
        scheduled(shadow, pod("p", cpu="1"), "a")

    found = one(compare(tell))
    assert (found.result, found.theirs, found.ours, found.why) == ("equal", "a", "a", "")


def test_a_node_with_as_many_points_is_a_tie() -> None:
    def tell(shadow: Shadow) -> None:
        for name in "abc":
            shadow.put_node(node(name).api)
        scheduled(shadow, pod("p", cpu="1"), "c")

    found = one(compare(tell))
    assert (found.result, found.theirs, found.ours) == ("tie", "c", "a")
    assert "3 nodes" in found.why


def test_fewer_points_are_a_difference_that_names_the_plugins() -> None:
    def tell(shadow: Shadow) -> None:
        shadow.put_node(node("a", cpu="8").api)
        shadow.put_node(node("b", cpu="2").api)
        scheduled(shadow, pod("p", cpu="1"), "b")

    found = one(compare(tell))
    assert found.result == "scores"
    assert "NodeResourcesFit" in found.why


def test_a_node_that_a_plugin_refuses_is_a_difference_with_its_reason() -> None:
    def tell(shadow: Shadow) -> None:
        shadow.put_node(node("a").api)
        shadow.put_node(node("b", taints=["gpu=yes:NoSchedule"]).api)
        scheduled(shadow, pod("p"), "b")

    found = one(compare(tell))
    assert found.result == "refused"
    assert "TaintToleration: node(s) had untolerated taint(s)" in found.why


def test_a_pod_that_fits_here_and_not_there_is_a_difference() -> None:
    def tell(shadow: Shadow) -> None:
        shadow.put_node(node("a").api)
        shadow.put_pod(pod("p", uid="p").api)
        shadow.put_pod(refused(pod("p", uid="p")))

    found = one(compare(tell))
    assert (found.result, found.theirs, found.ours) == ("fits", "", "a")


def test_a_pod_that_fits_nowhere_for_either_is_equal() -> None:
    def tell(shadow: Shadow) -> None:
        shadow.put_node(node("a").api)
        shadow.put_pod(pod("p", uid="p", cpu="64").api)
        shadow.put_pod(refused(pod("p", uid="p", cpu="64")))

    assert one(compare(tell)).result == "equal"


def test_what_is_gone_is_not_counted() -> None:
    def tell(shadow: Shadow) -> None:
        large, user = node("large", cpu="64").api, pod("user", cpu="4", on="a").api
        shadow.put_node(node("a").api)
        shadow.put_node(large)
        shadow.put_pods([user])
        shadow.remove_node(large)
        shadow.remove_pod(user)
        scheduled(shadow, pod("p", cpu="4"), "a")

    found = one(compare(tell))
    assert (found.result, found.ours) == ("equal", "a")


def test_a_claim_that_is_gone_is_missing_here_too() -> None:
    def tell(shadow: Shadow) -> None:
        shadow.put_node(node("a").api)
        for value in (claim("data", bound_to="disk"), volume("disk")):
            shadow.put_object(value)
        scheduled(shadow, user("first", "data"), "a")
        shadow.remove_object(claim("data", bound_to="disk"))
        scheduled(shadow, user("second", "data"), "a")

    first, second = compare(tell)
    assert (first.result, second.result) == ("equal", "refused")
    assert 'persistentvolumeclaim "data" not found' in second.why


def test_a_pod_that_they_have_nominated_fits_here_already() -> None:
    def tell(shadow: Shadow) -> None:
        waits = pod("p", uid="p", nominated="b")
        shadow.put_node(node("a").api)
        shadow.put_node(node("b", unschedulable=True).api)
        shadow.put_pod(waits.api)
        shadow.put_pod(refused(waits))

    found = one(compare(tell))
    assert (found.result, found.why) == (
        "fits",
        "here it fits a; they have nominated it for a node",
    )


def sampled(percentage: int | None) -> cfg.KubeSchedulerConfiguration:
    config = cfg.default_configuration()
    return structs.replace(config, percentage_of_nodes_to_score=percentage)


@pytest.mark.parametrize(("percentage", "result"), [(None, "sampling"), (100, "scores")])
def test_sampling_explains_only_where_it_is_in_force(percentage: int | None, result: str) -> None:
    def tell(shadow: Shadow) -> None:
        shadow.put_node(node("large", cpu="64").api)
        for index in range(110):
            shadow.put_node(node(f"n{index}").api)
        scheduled(shadow, pod("p", cpu="1"), "n7")

    assert one(compare(tell, sampled(percentage))).result == result


def test_a_node_that_no_sample_can_prefer_is_not_explained_by_sampling() -> None:
    def tell(shadow: Shadow) -> None:
        for index in range(110):
            shadow.put_node(node(f"n{index}").api)
        shadow.put_node(node("small", cpu="2").api)
        scheduled(shadow, pod("p", cpu="1"), "small")

    assert one(compare(tell)).result == "scores"


def test_a_decision_made_before_another_bind_is_told_as_such() -> None:
    def tell(shadow: Shadow) -> None:
        shadow.put_node(node("a", cpu="8").api)
        shadow.put_node(node("b", cpu="7").api)
        shadow.put_pod(pod("early", uid="early", cpu="4").api)
        scheduled(shadow, pod("late", uid="late", cpu="4", priority=5), "a")
        early = pod("early", uid="early", cpu="4", on="a")
        shadow.put_pod(early.api)

    found = compare(tell)
    assert [entry.result for entry in found] == ["equal", "order"]
    assert "default/late" in found[1].why


def test_pods_on_nodes_at_the_start_are_not_compared() -> None:
    def tell(shadow: Shadow) -> None:
        shadow.put_node(node("a").api)
        shadow.put_node(node("b").api)
        shadow.put_pods([pod("old", cpu="3", on="a").api, pod("new", uid="new", cpu="2").api])
        shadow.put_pod(pod("new", uid="new", cpu="2", on="b").api)

    found = one(compare(tell))
    assert (found.pod, found.result, found.ours) == ("default/new", "equal", "b")


def test_the_report_counts_and_tells_what_needs_a_look(tmp_path: Path) -> None:
    path = tmp_path / "differences.jsonl"
    report = ShadowReport(Metrics(), str(path))
    assert "Nothing to compare yet." in report.text()
    for result in ("equal", "tie", "scores"):
        report.add(
            Comparison(
                pod=f"default/{result}", uid="", at="", theirs="a", ours="b", result=result, why="w"
            )
        )
    report.close()
    text = report.text()
    assert "3 decisions of the other scheduler compared" in text
    assert "default/scores: theirs a, ours b (scores: w)" in text
    assert "default/tie:" not in text
    lines = [json.decode(line) for line in path.read_bytes().splitlines()]
    assert [line["pod"] for line in lines] == ["default/tie", "default/scores"]


def test_a_full_disk_ends_the_report_and_not_the_comparison(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = ShadowReport(Metrics(), "/dev/full")
    for number in range(3):
        report.add(
            Comparison(pod=f"p{number}", uid="", at="", theirs="a", ours="b", result="tie", why="w")
        )
    assert report.counts["tie"] == 3
    assert caplog.text.count("the report cannot be written any more") == 1

import logging
from pathlib import Path

import pytest

import mooring.framework as fw
from mooring.errors import ConfigError
from mooring.simulator import Simulation
from mooring.testing import check_plugin, node, pod
from sample_plugin import SamplePlugin

CONFIG = Path(__file__).with_name("config.yaml")
SCHEDULER = "sample-scheduler"
ARGS = "profiles[0].pluginConfig[sample-plugin].args"


def problems_of(**replacements: str) -> list[str]:
    """Why the scheduler does not start when these words of the file are replaced."""
    text = CONFIG.read_text()
    for word, replacement in replacements.items():
        assert word in text
        text = text.replace(word, replacement)
    with pytest.raises(ConfigError) as refused:
        Simulation(config=text)
    return [str(problem) for problem in refused.value.problems]


def test_reads_its_arguments_from_the_file() -> None:
    with Simulation(config=CONFIG) as sim:
        plugin = sim.scheduler.runtimes[SCHEDULER].profile.plugins["sample-plugin"]
        assert isinstance(plugin, SamplePlugin)
        assert plugin.args.favorite_color == "#326CE5"
        assert plugin.args.favorite_number == 7
        assert plugin.args.thanks_to == "Kubernetes"


def test_does_not_start_with_a_word_for_a_number() -> None:
    assert problems_of(**{"favoriteNumber: 7": "favoriteNumber: seven"}) == [
        f'{ARGS}.favoriteNumber: expected int, got str "seven"'
    ]


def test_does_not_start_with_an_argument_it_does_not_know() -> None:
    assert problems_of(favoriteColor="favorColor") == [
        f"{ARGS}.favorColor: unknown field; expected one of: favoriteColor, favoriteNumber,"
        ' thanksTo; did you mean "favoriteColor"?'
    ]


def test_names_every_bad_argument_at_once() -> None:
    found = problems_of(**{"favoriteNumber: 7": "favoriteNumber: seven", "thanksTo": "blames"})
    assert [problem.split(": ")[0] for problem in found] == [
        f"{ARGS}.blames",
        f"{ARGS}.favoriteNumber",
    ]


def test_schedules_pods_that_name_the_scheduler_and_leaves_others_alone() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(node("a"))
        sim.schedule(pod("ours", scheduler=SCHEDULER), pod("theirs"))
        assert sim.placements() == {"ours": "a", "theirs": ""}
        assert sim.where("theirs") is None
        assert [event.pod for event in sim.events] == ["default/ours"]


def test_logs_at_each_point_on_the_way(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "sample_plugin"), Simulation(config=CONFIG) as sim:
        sim.apply(node("a"))
        sim.schedule(pod("ours", scheduler=SCHEDULER))
    said = [record.message for record in caplog.records if record.name == "sample_plugin"]
    assert said == ["prefilter pod", "filter pod", "prebind node info"]


class Hold(fw.Permit):
    """Keeps pods between the decision and the binding until the test lets them go."""

    name = "Hold"

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Wait:
        return fw.Wait(timeout=60)


def test_does_not_bind_to_a_node_that_vanished_after_the_decision() -> None:
    holding = CONFIG.read_text().replace(
        "      preBind:", "      permit: {enabled: [{name: Hold}]}\n      preBind:"
    )
    with Simulation(config=holding, plugins=[Hold]) as sim:
        sim.apply(node("a"))
        sim.schedule(pod("ours", scheduler=SCHEDULER))
        sim.delete(node("a"))
        for held in sim.scheduler.waiting:
            held.allow("Hold")
        sim.settle()
        assert sim.cluster.bindings == []
        assert sim.where("ours") == "backoff"
        assert sim.why("ours") == (
            'running PreBind plugin "sample-plugin": prebind get node: a info error:'
            ' nodeinfo not found for node name "a"'
        )
        sim.apply(node("b"))
        sim.advance(5)
        for held in sim.scheduler.waiting:
            held.allow("Hold")
        sim.settle()
        assert sim.node_of("ours") == "b"


def test_sample_plugin_honours_the_contract() -> None:
    check_plugin(SamplePlugin, args=[{}, {"favoriteColor": "#326CE5", "favoriteNumber": 7}])

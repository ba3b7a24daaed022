from typing import Any

import pytest
from tests.unshowable import Parting

import mooring.framework as fw
from mooring import config as cfg
from mooring.errors import ConfigError
from mooring.framework.plugin import Base
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry
from mooring.testing.build import StubHandle

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class WarmArgs(fw.Args, frozen=True):
    degrees: int = 20


class Warm(fw.Plugin[WarmArgs], fw.Filter, fw.Score):
    name = "Warm"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return self.args.degrees


class Bright(fw.Score):
    name = "Bright"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


class SortArgs(fw.Args, frozen=True):
    upwards: bool = True


class Alphabet(fw.Plugin[SortArgs], fw.QueueSort):
    name = "Alphabet"

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.pod.name < b.pod.name


def plan(profiles: str, *plugins: type[Base]) -> list[ProfilePlan]:
    """Plans of the profiles written as YAML list items."""
    config = cfg.load_text(HEADER + "profiles:\n" + profiles)
    return plan_profiles(config, Registry.discover(plugins or (Warm, Bright, Alphabet)))


def only(profiles: str) -> ProfilePlan:
    [found] = plan(profiles)
    return found


def problems(profiles: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        plan(profiles)
    return [str(problem) for problem in caught.value.problems]


def test_plans_the_defaults_for_an_empty_file() -> None:
    [found] = plan_profiles(cfg.default_configuration(), Registry.discover())
    assert found.scheduler_name == "default-scheduler"
    assert found.points["queueSort"] == ("PrioritySort",)
    assert found.points["bind"] == ("DefaultBinder",)
    assert found.points["filter"][:2] == ("NodeUnschedulable", "NodeName")
    assert found.weights["TaintToleration"] == 3
    assert found.weights["NodeResourcesFit"] == 1


def test_multi_point_enables_a_plugin_wherever_it_serves() -> None:
    found = only("- plugins: {multiPoint: {enabled: [{name: Warm, weight: 4}]}}")
    assert found.points["filter"][-1] == "Warm"
    assert found.points["score"][-1] == "Warm"
    assert "Warm" not in found.points["reserve"]
    assert found.weights["Warm"] == 4


def test_a_point_of_its_own_has_the_last_word_on_the_weight() -> None:
    found = only(
        """
- plugins:
    multiPoint: {enabled: [{name: Warm, weight: 4}, {name: Bright}]}
    score: {enabled: [{name: Warm, weight: 7}]}
"""
    )
    assert (found.weights["Warm"], found.weights["Bright"]) == (7, 1)
    assert found.points["score"][0] == "Warm"


def test_a_path_stands_for_the_name_of_its_class_everywhere() -> None:
    path = f"{__name__}:Warm"
    text = f"""
- plugins:
    multiPoint: {{enabled: [{{name: "{path}"}}]}}
    score: {{disabled: [{{name: "{path}"}}]}}
  pluginConfig:
  - {{name: "{path}", args: {{degrees: 30}}}}
"""
    [found] = plan(text, Bright)
    assert found.classes["Warm"] is Warm
    assert found.args["Warm"] == WarmArgs(degrees=30)
    assert "Warm" in found.points["filter"]
    assert "Warm" not in found.points["score"]


def test_arguments_are_decoded_or_default() -> None:
    enabled = "- plugins: {filter: {enabled: [{name: Warm}]}}\n"
    assert only(enabled).args["Warm"] == WarmArgs()
    given = enabled + "  pluginConfig: [{name: Warm, args: {degrees: -3}}]"
    assert only(given).args["Warm"] == WarmArgs(degrees=-3)


def test_reports_every_problem_of_every_profile_with_its_place() -> None:
    found = problems(
        """
- schedulerName: one
  plugins:
    filter: {enabled: [{name: Missing}, {name: Bright}]}
    multiPoint: {enabled: [{name: "no.such:Thing"}]}
    placementScore: {enabled: [{name: Warm}]}
- schedulerName: two
  plugins:
    bind: {disabled: [{name: "*"}]}
    multiPoint: {enabled: [{name: Alphabet}]}
- schedulerName: three
  plugins: {score: {enabled: [{name: Warm}]}}
  pluginConfig: [{name: Warm, args: {degrees: hot, colour: red}}]
"""
    )
    text = "\n".join(sorted(found))
    assert 'profiles[0].plugins.filter.enabled[0].name: plugin "Missing" does not exist' in text
    assert (
        'profiles[0].plugins.filter.enabled[1]: plugin "Bright" does not extend FilterPlugin plugin'
        in text
    )
    assert "profiles[0].plugins.multiPoint.enabled[0].name: can't import no.such:Thing" in text
    assert "profiles[0].plugins.placementScore: this extension point is not served yet" in text
    assert (
        "profiles[1].plugins.bind: at least one bind plugin is needed for profile with scheduler "
        'name "two"' in text
    )
    assert (
        "profiles[1].plugins.queueSort: only one queue sort plugin required for profile with "
        'scheduler name "two", but got 2' in text
    )
    assert "profiles[2].pluginConfig[Warm].args" in text
    assert "colour" in text


def test_reports_what_cannot_be_found_once() -> None:
    wanted = '[{name: Missing}, {name: "no.such:Thing"}]'
    found = problems(f"- plugins: {{score: {{enabled: {wanted}}}, filter: {{enabled: {wanted}}}}}")
    assert len(found) == 2
    assert "can't import no.such:Thing" in found[0]
    assert found[1].endswith('plugin "Missing" does not exist')


def test_does_not_report_what_follows_from_another_problem() -> None:
    [text] = problems('- plugins: {bind: {enabled: [{name: Warm}], disabled: [{name: "*"}]}}')
    assert text.endswith('plugin "Warm" does not extend BindPlugin plugin')


def test_one_queue_cannot_be_sorted_in_two_ways() -> None:
    sort = "plugins: {multiPoint: {disabled: [{name: PrioritySort}], enabled: [{name: Alphabet}]}}"
    [text] = problems(f"- schedulerName: one\n- schedulerName: two\n  {sort}\n")
    assert text == (
        "profiles[1].plugins.queueSort: queueSort must be the same for all profiles: "
        '"Alphabet" here, "PrioritySort" before'
    )
    down = "pluginConfig: [{name: Alphabet, args: {upwards: false}}]"
    [text] = problems(f"- schedulerName: one\n  {sort}\n- schedulerName: two\n  {sort}\n  {down}\n")
    assert text == (
        "profiles[1].pluginConfig[Alphabet].args: queueSort must be the same for all profiles, "
        "its arguments too"
    )


def test_weights_must_not_overflow_the_sum() -> None:
    huge = 2**63 // 100
    [text] = problems(f"- plugins: {{score: {{enabled: [{{name: Warm, weight: {huge}}}]}}}}")
    assert text == (
        "profiles[0].plugins.score: score plugins: total score of Score plugins could overflow"
    )


def test_a_plugin_listed_twice_is_reported_once() -> None:
    found = problems("- plugins: {multiPoint: {enabled: [{name: Warm}, {name: Warm}]}}")
    assert [text for text in found if "already registered" in text]


def build(found: ProfilePlan) -> Any:
    handle = StubHandle()
    return found.build(handle)


def test_builds_each_plugin_once() -> None:
    profile = build(only("- plugins: {multiPoint: {enabled: [{name: Warm}]}}"))
    assert profile.at(fw.Filter)[-1] is profile.at(fw.Score)[-1]
    assert profile.plugins["Warm"].args == WarmArgs()
    assert profile.plugins["Warm"].handle.scheduler_name == "default-scheduler"


class Cold(Bright):
    name = "Cold"

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        raise OSError("no heating")


class Dark(Bright):
    name = "Dark"

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        raise TypeError("no light")


class Gone(Bright):
    name = "Gone"

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        raise Parting


def test_reports_every_plugin_that_refuses_to_start() -> None:
    enabled = "- plugins: {score: {enabled: [{name: Cold}, {name: Dark}, {name: Gone}]}}"
    [found] = plan(enabled, Cold, Dark, Gone)
    with pytest.raises(ConfigError) as caught:
        build(found)
    first, second, third = (str(problem) for problem in caught.value.problems)
    assert first == ('profile default-scheduler: initializing plugin "Cold": OSError: no heating')
    assert 'initializing plugin "Dark": TypeError' in second
    assert 'initializing plugin "Gone": Parting: <Parting that can' in third


def test_closes_all_plugins_although_one_fails(caplog: pytest.LogCaptureFixture) -> None:
    closed = []

    class Sulky(Bright):
        name = "Sulky"

        def close(self) -> None:
            raise SystemExit("no")

    class Last(Bright):
        name = "Last"

        def close(self) -> None:
            closed.append(self.name)

    [found] = plan("- plugins: {score: {enabled: [{name: Sulky}, {name: Last}]}}", Sulky, Last)
    build(found).close()
    assert closed == ["Last"]
    assert "plugin failed to close" in caplog.text

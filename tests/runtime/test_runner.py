"""What the PostFilter plugins of a profile say together."""

import asyncio

import mooring.framework as fw
from mooring import config as cfg
from mooring.observe.metrics import Metrics
from mooring.runtime.guard import Guard
from mooring.runtime.profile import plan_profiles
from mooring.runtime.registry import Registry
from mooring.runtime.runner import PostFilterOutcome, Runner
from mooring.testing import node, nodes, pod
from mooring.testing.build import StubHandle

VICTIM = pod("victim", on="a")
REFUSED = fw.Status.unschedulable("no room")
Answer = fw.Status | fw.Nominate


def said(*answers: Answer) -> PostFilterOutcome:
    """The outcome if one plugin after the other gives these answers: A, B, and so on."""

    def plugin(name: str, answer: Answer) -> type[fw.PostFilter]:
        def post_filter(self: fw.PostFilter, *_: object) -> Answer:
            return answer

        return type(name, (fw.PostFilter,), {"name": name, "post_filter": post_filter})

    plugins = [plugin("ABC"[place], answer) for place, answer in enumerate(answers)]
    enabled = cfg.PluginSet(
        enabled=tuple(cfg.PluginRef(one.name) for one in plugins),
        disabled=(cfg.PluginRef("*"),),
    )
    config = cfg.apply_defaults(
        cfg.KubeSchedulerConfiguration(
            profiles=(cfg.KubeSchedulerProfile(plugins=cfg.Plugins(post_filter=enabled)),)
        )
    )
    [plan] = plan_profiles(config, Registry.discover(plugins))
    runner = Runner(plan.build(StubHandle()), Guard(Metrics()))
    some = nodes(node("a"))
    verdicts = fw.Verdicts.passing(some).reject_all(REFUSED)
    outcome = asyncio.run(runner.post_filter(fw.CycleState(), pod("p"), some, verdicts))
    assert outcome is not None
    return outcome


def test_refusals_are_told_together_and_signed_by_the_first_plugin() -> None:
    outcome = said(REFUSED, fw.Status.unschedulable("nor here"))
    assert outcome.status == fw.Status.unschedulable("no room", "nor here").by("A")


def test_a_refusal_may_withdraw_a_nomination_but_evicts_nobody() -> None:
    withdrawn = fw.Nominate("", REFUSED, victims=(VICTIM,))
    for outcome in (said(withdrawn), said(withdrawn, REFUSED), said(REFUSED, withdrawn)):
        assert (outcome.nominate, outcome.victims) == ("", ())


def test_victims_of_a_plugin_that_refused_are_not_those_of_the_next() -> None:
    outcome = said(fw.Nominate("a", REFUSED, victims=(VICTIM,)), fw.OK)
    assert outcome.status.ok
    assert (outcome.nominate, outcome.victims) == (None, ())


def test_a_plugin_that_finds_room_has_the_last_word() -> None:
    outcome = said(REFUSED, fw.Nominate("a", victims=(VICTIM,)), fw.Nominate("b"))
    assert outcome.status.ok
    assert (outcome.nominate, outcome.victims) == ("a", (VICTIM,))


def test_an_error_leaves_the_nomination_as_it_is() -> None:
    outcome = said(fw.Nominate("a", REFUSED), fw.Nominate("b", fw.Status.error("broken")))
    assert outcome.status.code is fw.Code.ERROR
    assert (outcome.nominate, outcome.status.plugin) == (None, "B")

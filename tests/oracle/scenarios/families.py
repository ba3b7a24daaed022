"""All families by name, and the numbered scenarios of a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.oracle.scenarios import objects, profiles
from tests.oracle.scenarios.case import Case
from tests.oracle.scenarios.crowded import mixed_case, nominated, preemption
from tests.oracle.scenarios.demands import resources
from tests.oracle.scenarios.devices import dynamicresources
from tests.oracle.scenarios.dice import Dice, Object
from tests.oracle.scenarios.neighbours import interpod, peopled, spread
from tests.oracle.scenarios.places import add_images, images, misc, nodeaffinity, ports, taints
from tests.oracle.scenarios.storage import Storage


def volumes(dice: Dice) -> Case:
    cluster, spaces = peopled(dice, 4, 16)
    storage = Storage(dice, cluster)
    storage.set_up()
    storage.crowd(spaces, dice.pick((0, 5, 20, 35)))
    pod = objects.pod(dice, namespace=dice.pick(spaces), priority=dice.pick((0, 500)))
    storage.add_volumes(pod, 1, 3)
    return Case(pod, cluster)


def mixed(dice: Dice) -> Case:
    """Everything at once, now and then with arguments of plugins."""
    case = mixed_case(dice, 6, 25)
    for node in case.cluster["nodes"]:
        add_images(dice, node, 3)
    profile = None
    if dice.chance(0.25):
        names = objects.names(case.cluster["nodes"])
        profile = {"pluginConfig": profiles.arguments(dice, names, 1)}
    return Case(case.pod, case.cluster, profile)


def config(dice: Dice) -> Case:
    """Everything at once under a profile of its own."""
    case = mixed_case(dice, 6, 25)
    names = objects.names(case.cluster["nodes"])
    return Case(case.pod, case.cluster, profiles.profile(dice, names))


FAMILIES: dict[str, Callable[[Dice], Case]] = {
    family.__name__: family
    for family in (
        *(resources, nodeaffinity, taints, ports, spread, interpod, images, volumes, misc),
        *(preemption, mixed, config, nominated, dynamicresources),
    )
}


class Numbered(NamedTuple):
    """The scenarios of a run, spread evenly over the families."""

    seed: int
    families: tuple[str, ...] = tuple(FAMILIES)

    def scenario(self, number: int) -> Object:
        """The same for the same seed and number, however many others are made."""
        family = self.families[number % len(self.families)]
        turn = number // len(self.families)
        case = FAMILIES[family](Dice(f"{family}/{self.seed}/{turn}"))
        scenario: Object = {
            "id": f"{family}-{self.seed}-{turn:05}",
            "family": family,
            "profile": case.profile,
            "cluster": case.cluster,
            "pod": case.pod,
        }
        if case.in_flight:
            scenario["inFlight"] = list(case.in_flight)
        return scenario

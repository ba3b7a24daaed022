"""What every simulated component of a cluster is given: controllers and kubelets."""

from __future__ import annotations

import random
from dataclasses import dataclass

from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.event_writer import EventWriter
from mooring.framework.handle import Clock


@dataclass
class ComponentContext:
    """The API server, and the cluster's clock, random numbers and Events."""

    verbs: Verbs
    clock: Clock
    rng: random.Random
    event_writer: EventWriter

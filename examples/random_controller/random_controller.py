"""Place every pod that names `my-scheduler` on a node picked at random."""

import random

from mooring.controller import Nodes, Pod, controller


@controller(scheduler_name="my-scheduler")
def choose(pod: Pod, nodes: Nodes) -> str:
    return random.choice(nodes).name

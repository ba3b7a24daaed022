"""Rank nodes by the number their names end in."""

import re

import mooring.framework as fw


class NameScore(fw.Score):
    """k8s-node02 gets 2 points, k8s-node01 gets 1, k8s-master none; 100 is the most there is."""

    name = "namescore"
    depends_on = fw.NODE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        number = re.search(r"[0-9]+$", node.name)
        return min(int(number[0]), fw.MAX_SCORE) if number else 0

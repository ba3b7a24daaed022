"""Prefer nodes with a fast disk."""

import mooring.framework as fw


class PreferSsd(fw.Score):
    """Nodes labelled `disk=ssd` get all the points, the others none."""

    name = "PreferSsd"
    depends_on = fw.NODE  # asked once per node, not for every pod

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return fw.MAX_SCORE if node.labels.get("disk") == "ssd" else 0

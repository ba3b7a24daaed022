"""A plugin that fails for every pod, once."""

from __future__ import annotations

import mooring.framework as fw


class FailsOnce(fw.Filter):
    """Fails the first attempt of each pod."""

    name = "FailsOnce"

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._seen: set[str] = set()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        if pod.key in self._seen:
            return fw.OK
        self._seen.add(pod.key)
        return fw.Status.error("not yet")

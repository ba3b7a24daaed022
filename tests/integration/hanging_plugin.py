"""Plugins that hang for pods with a label: in which way or how long, says its value."""

import ctypes
import re
import signal
import time

import numpy as np

import mooring.framework as fw


class Hanging(fw.Plugin[fw.Args], fw.Score):
    """Scores all nodes alike, sooner or later."""

    name = "Hanging"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        hang(pod.labels.get("hang", "sleep" if pod.name.startswith("bad") else ""))
        return np.zeros(len(nodes), dtype=np.int64)


def hang(how: str) -> None:
    if how == "sleep":
        time.sleep(60)
    elif how == "gil":  # C code that holds the interpreter's lock and looks at no signal
        sum(range(3 * 10**8))
    elif how == "locked":  # the same for two seconds, however busy the machine is
        hold_lock(2.0)
    elif how == "regex":
        re.match(r"(a+)+$", "a" * 40 + "b")
    elif how == "numpy":
        ones = np.ones(24_000)
        np.convolve(ones, ones)
    elif how == "memory":
        taken = []
        while True:
            taken.append(bytearray(1 << 27))


class Locking(fw.Plugin[fw.Args], fw.PreBind):
    """Stops the whole process on the way of a pod to its node."""

    name = "Locking"

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        hold_lock(float(pod.labels.get("lock", "0")))
        return fw.OK


def hold_lock(seconds: float) -> None:
    """Hold the interpreter's lock in C code that looks at no signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])

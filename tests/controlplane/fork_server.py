"""Becomes `python -m mooring` again and again, in forks that have all modules already.

Its imports take about a second of processor time, which is most of what a short run costs.
`forking.py` runs this file by path: python fork_server.py <number of a socket>, and sends orders,
each a line of JSON. One is answered with the number of the new process, or with an exit code.
"""

import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
_MODULES = (
    "mooring.cli.run.command",
    "mooring.cli.run.process",
    "mooring.cli.run.endpoints",
    "mooring.cli.cluster",
    "mooring.cli.controller",
    "mooring.cli.extender",
)


def serve(orders: socket.socket) -> dict[str, Any]:
    """Until the other side is gone; returns in every fork, with the order that it is made for."""
    with orders, orders.makefile("rw") as lines:
        for line in lines:
            order = json.loads(line)
            if "ended" in order:
                _, status = os.waitpid(order["ended"], 0)
                answer = os.waitstatus_to_exitcode(status)
            else:
                log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                answer = os.fork()
                if answer == 0:
                    return {**order, "log": log}
                os.close(log)
            print(answer, file=lines, flush=True)
    sys.exit()


def become(order: dict[str, Any], server: int) -> None:
    """Be as a process that was started with this command, folder, environment and log."""
    os.setsid()  # Ctrl-C is for the test process
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0 or os.getppid() != server:
        sys.exit("fork_server.py: the parent was gone before its death could be noticed")
    for number in (1, 2):
        os.dup2(order["log"], number)
    os.close(order["log"])
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    if order["env"].get("PYTHONUNBUFFERED"):
        for name, number in (("stdout", 1), ("stderr", 2)):
            raw = io.FileIO(number, "w", closefd=False)
            errors = getattr(sys, name).errors
            setattr(sys, name, io.TextIOWrapper(raw, "utf-8", errors, write_through=True))
    sys.orig_argv = order["command"]
    sys.argv = ["mooring", *order["command"][3:]]
    added = [path for path in order["env"].get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = [os.getcwd(), *added]  # in the place of this file's folder
    importlib.invalidate_caches()


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as `mooring` does; no threads, so it can be forked
    for module in _MODULES:
        importlib.import_module(module)
    from mooring.runtime.registry import Registry

    registry = Registry.discover()
    for name in registry.names:
        registry.get(name)
    gc.collect()
    gc.freeze()
    me = os.getpid()
    become(serve(socket.socket(fileno=int(sys.argv[1]))), me)
    runpy.run_module("mooring", run_name="__main__", alter_sys=True)

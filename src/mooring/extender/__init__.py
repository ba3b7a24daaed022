"""Scheduler extenders: the payloads, the client that calls them, and the server to write one.

A scheduler (kube-scheduler or mooring) calls an extender over HTTP to filter and prioritize nodes,
to choose the victims of a preemption, and to bind. The extender runs plugins as a scheduler does,
or plain functions registered with `Extender`. This room owns the words *verb* and *wire*.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.extender.serving.verbs import Extender
else:

    def __getattr__(name: str) -> object:
        # Only on demand: a scheduler that calls extenders does not need the serving side.
        if name != "Extender":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from mooring.extender.serving.verbs import Extender

        return Extender


__all__ = ["Extender"]

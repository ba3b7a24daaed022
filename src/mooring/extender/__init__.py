"""Scheduler extenders: the payloads, the client that calls them, and the server to write one.

A kube-scheduler (or ours) asks an extender over HTTP to filter and prioritize nodes, to choose the
victims of a preemption, and to bind. The extender runs plugins as a scheduler does, or plain
functions registered with `Extender`. This room owns the words *verb* and *wire*.
"""

from mooring.extender.serving.functions import Extender

__all__ = ["Extender"]

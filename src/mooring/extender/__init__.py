"""Scheduler extenders, both ways: the payloads, the calls to others, and what others may call.

A kube-scheduler (or ours) asks an extender over HTTP which nodes fit, how good they are, whom to
evict, and to bind. What answers is a plugin as in a scheduler, or a plain function under
`Extender`. This room owns the words *verb* and *wire*.
"""

from mooring.extender.serving.functions import Extender

__all__ = ["Extender"]

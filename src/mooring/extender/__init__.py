"""Scheduler extenders, both ways: the payloads, the calls to others, and what others may call.

A kube-scheduler (or ours) asks an extender over HTTP which nodes fit, how good they are, whom to
evict, and to bind. This room owns the words *verb* and *wire*.
"""

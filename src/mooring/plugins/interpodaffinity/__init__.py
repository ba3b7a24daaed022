"""Affinity and anti-affinity between pods, required and preferred.

`plugin` filters and scores nodes by the pods in their topology domains. `terms` parses the terms of
a pod, `matched_terms` finds those that matter for a pod to be placed, and `counts` holds the
numbers of matching pods per domain.
"""

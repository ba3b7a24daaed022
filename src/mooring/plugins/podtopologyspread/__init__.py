"""The plugin that spreads pods of a kind evenly over zones, hosts or other domains.

`constraints` parses the constraints of a pod or the configuration, `owners` finds the selector of
default constraints, `counts` turns both into pods per domain, and `plugin` filters and scores by
those numbers. `args` are its arguments, `wakeups` its queueing hints.
"""

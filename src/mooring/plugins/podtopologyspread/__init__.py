"""The plugin that spreads pods of a kind evenly over zones, hosts or other domains.

`constraints` reads what a pod or the configuration asks for, `owners` finds out for default
constraints which pods belong together, `counts` turns both into pods per domain, and `plugin`
decides by those numbers. `args` is what it can be told, `wakeups` which events may help.
"""

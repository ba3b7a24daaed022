"""Runs the contract: finds plugin classes, builds profiles, calls each point and survives it.

Configuration flows in, a `Profile` of live plugins flows out; then pods and nodes flow in,
statuses and scores flow out. An exception of a plugin ends here and becomes a status. This room
owns the words *registry*, *profile*, *runner* and *evaluation*.
"""

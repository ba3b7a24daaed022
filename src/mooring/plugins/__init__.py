"""The default plugins, one file each, under kube-scheduler's names, weights and messages.

They are found as all plugins are: by entry points in `pyproject.toml`. Each holds its name, its
arguments and its reasons, decides per node (the specification) and has a vectorised form for all
nodes at once. Pods and nodes flow in, statuses and scores flow out; only DefaultBinder and
VolumeBinding write to the API server.
"""

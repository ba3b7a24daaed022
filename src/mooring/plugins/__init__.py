"""The default plugins, one file each, under kube-scheduler's names, weights and messages.

They come in by the same door as everybody's: entry points in `pyproject.toml`. Each holds its name,
its arguments and its reasons, says per node what it decides (the specification) and has a
vectorised form that answers for all nodes at once. Pods and nodes flow in, statuses and scores flow
out; the one request to the outside is the binder's.
"""

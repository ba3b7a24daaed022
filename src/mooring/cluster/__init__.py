"""The laptop cluster: an API server, controllers and kubelets in one process.

Input: requests and manifests. Output: objects, watches and running pods, as kubectl, a scheduler or
a controller would see them on a real cluster. `EmbeddedCluster` in `embedded` starts all of it. The
rooms below (`scheduler`, `simulator` and so on) do not import this one; README.md lists the files.
"""

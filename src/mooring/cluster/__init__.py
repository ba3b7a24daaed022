"""The laptop cluster: an API server, controllers and kubelets in one process.

Requests and manifests flow in; objects, watches and running pods flow out, as from a real cluster
where kubectl, a scheduler or a controller can tell. `EmbeddedCluster` in `embedded` starts all of
it. The rooms below (`scheduler`, `simulator` and so on) do not import this one; README.md beside
this file says what is where.
"""

"""The plugin that finds volumes for a pod's claims, and binds them before the pod is bound.

`pod_claims` sorts the claims of a pod. `pod_volumes` checks, for one node or for all at once, that
bound volumes are reachable, and that unbound claims get an existing volume (`matching`) or a new
one (`provisioning`). What is decided for the chosen node is assumed (`assume_cache`), written to
the API server and waited for (`binding`). `reasons` are the statuses of nodes that are refused.
"""

"""Kubelets without machines: they admit pods, report node and pod status, and renew leases.

Pods that are bound to a node flow in; status updates and Events flow out through the verbs of the
API server. Containers are not run: a pod is started, runs and ends on the cluster's clock.
"""

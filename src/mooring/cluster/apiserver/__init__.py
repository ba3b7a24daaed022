"""An in-process API server, compatible with kubectl and kube-scheduler.

Input: requests, over HTTP or from the same process. Output: JSON, tables and watches as from a
kube-apiserver. The words owned here are *store*, *item*, *history* and *subscription*. Objects are
stored as the bytes that are sent; kinds are decoded only for defaulting, validation and admission.
"""

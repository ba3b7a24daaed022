"""An API server in this process: real enough that kubectl and kube-scheduler believe in it.

Flows in: requests, over HTTP or from the same process. Flows out: JSON, tables and watches, as from
a kube-apiserver where a scheduler or kubectl can tell. The words owned here are *store*, *item*,
*history* and *subscription*. Objects are kept as the bytes they are sent as: nothing here knows
what a pod is beyond what it must check or fill in.
"""

"""The plugin that finds storage for a pod's claims, and gets them bound before the pod is.

`plugin` sorts a pod's claims (`podclaims`) and asks, node by node or for all nodes at once, whether
bound volumes can be reached, whether existing ones can be had (`matching`) or new ones be made
(`provisioning`). What it picks for the chosen node it believes at once (`assumed`), writes to the
cluster and waits for (`binding`). `reasons` are the ways in which a node may fall short.
"""

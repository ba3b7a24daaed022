"""The pods to evict so that another fits: a pure search over what-ifs, without evictions.

A pod and the nodes that refused it flow in; candidates, and the best of them, flow out. This room
owns the words *victim*, *candidate* and *reprieve*.
"""

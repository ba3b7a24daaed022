"""Whom to evict so that a pod fits: a pure search over what-ifs, which evicts nobody.

A pod and the nodes that refused it flow in; candidates, and the best of them, flow out. This room
owns the words *victim*, *candidate* and *reprieve*.
"""

"""Talking to an API server: asynchronous, one seam to the wire, no state of the cluster but stores.

Flows in: credentials and typed requests. Flows out: typed objects, `ApiError`s that say what the
server said, and events in order. The words owned here are *transport*, *reflector*, *informer*,
*lease* and *fence*. This room knows nothing of scheduling: a small controller may use it alone.
"""

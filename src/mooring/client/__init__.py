"""An asynchronous client of an API server: requests, reflectors, informers, leases, Events.

Flows in: credentials and typed requests. Flows out: typed objects, `ApiError`s with the server's
message, and events in order. This room knows nothing of scheduling: any controller may use it.
"""

"""Pods that want to be near other pods, or far from them, or must be either.

`plugin` refuses and scores nodes by who is in their topology domain. `terms` reads what pods say,
`counts` holds how many pods that is about, domain by domain.
"""

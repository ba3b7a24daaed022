"""The search for pods to evict so that another pod fits; it evicts nothing itself.

Input: a pod and the nodes that refused it. Output: candidates, and the best of them. This room owns
the words *victim*, *candidate* and *reprieve*.
"""

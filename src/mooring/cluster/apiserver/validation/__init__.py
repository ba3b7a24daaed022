"""Validation of objects, with kube-apiserver's messages.

Input: an object after defaulting, and on updates the one it replaces. Output: an `ErrorList`.
`registry.py` names the rules of each kind.
"""

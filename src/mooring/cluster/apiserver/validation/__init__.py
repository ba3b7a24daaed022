"""Validation of objects, with kube-apiserver's messages.

Input: an object after defaulting, and on updates the one it replaces. Output: an `ErrorList`.
`objects` is the entry point and picks the rules of a kind; the other files hold the rules.
"""

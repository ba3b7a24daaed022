"""Defaults of fields that were left out.

Input: an object as it was sent. Output: the same object with kube-apiserver's defaults, set in
place. `objects` is the entry point; the other files hold the defaults of pods and workloads.
"""

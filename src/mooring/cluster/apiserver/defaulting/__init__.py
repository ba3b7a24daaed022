"""Defaults of fields that were left out.

Input: an object as it was sent. Output: the same object with kube-apiserver's defaults, set in
place. `registry.py` names the function of each kind.
"""

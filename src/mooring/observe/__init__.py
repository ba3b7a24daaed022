"""Logs and metrics, and the HTTP listener that serves them.

Every room may import this one, which imports nothing of ours but the error types. It owns the words
*metric*, *bucket* and *label*.
"""

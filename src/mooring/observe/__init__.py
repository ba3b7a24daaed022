"""Logs and metrics, and the HTTP listener that serves them.

Every room may import this one; it imports nothing of mooring but the error types. It owns the words
*metric*, *bucket* and *label*.
"""

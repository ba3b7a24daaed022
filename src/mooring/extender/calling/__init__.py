"""Extenders of the configuration, called by our own scheduler."""

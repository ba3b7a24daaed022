"""Plugins and functions, served as an extender to other schedulers."""

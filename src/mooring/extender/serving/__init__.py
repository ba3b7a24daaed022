"""Plugins and functions of ours, served as an extender to other schedulers."""

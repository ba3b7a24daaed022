"""The HTTPS endpoints of a running process: health, metrics, configuration.

Flows in: checks, metrics and the effective configuration. Flows out: pages, to clients that the
cluster authenticates and authorises.
"""

"""What a running process shows to the outside over HTTPS: health, metrics, configuration.

Flows in: checks, metrics and the effective configuration. Flows out: pages, to whoever the cluster
says may see them.
"""

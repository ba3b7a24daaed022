"""`mooring doctor`: what is wrong with an installation, a configuration, a cluster; what to do.

Flows in: flags; flows out: findings (`findings.py`), one or more from each check. Nothing is
written to the cluster.
"""

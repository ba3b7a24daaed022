"""The controllers of a simulated cluster: what makes pods of Deployments, Jobs and the like.

Changes of the store flow in, writes through the API server's verbs flow out; the same objects that
the controllers of a real cluster work on, as far as a scheduler or kubectl can tell. This room owns
the words *reconcile* and *work queue*.
"""

from mooring.cluster.controllers.controller_manager import ALL, Controllers

__all__ = ["ALL", "Controllers"]

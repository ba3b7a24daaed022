"""The built-in controllers: Deployments, Jobs and the like.

Input: changes of the store. Output: writes through the API server's verbs, to the same objects that
the controllers of a real cluster write. This room owns the word *reconcile*.
"""

from mooring.cluster.controllers.controller_manager import ALL, Controllers

__all__ = ["ALL", "Controllers"]

"""Well-known node labels."""

from typing import Final

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"

GIVEN_TO_PODS: Final = (ZONE, REGION)
"""What an API server since 1.35 copies from a node to the pods that are bound to it."""

"""The arguments of InterPodAffinity, with kube-scheduler's defaults and error messages."""

from typing import Final

import mooring.framework as fw

MAX_WEIGHT: Final = 100


class InterPodAffinityArgs(fw.Args, frozen=True):
    """How much the terms of existing pods count when another pod is placed."""

    hard_pod_affinity_weight: int = 1  # of each affinity term that an existing pod requires
    ignore_preferred_terms_of_existing_pods: bool = False  # unless the incoming pod has some too

    def __post_init__(self) -> None:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= MAX_WEIGHT:
            raise ValueError(
                f"hardPodAffinityWeight: Invalid value: {weight}:"
                f" not in valid range [0, {MAX_WEIGHT}]"
            )

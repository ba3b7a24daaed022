"""What InterPodAffinity can be told, with kube-scheduler's defaults and complaints."""

from typing import Final

import mooring.framework as fw

MAX_WEIGHT: Final = 100


class InterPodAffinityArgs(fw.Args, frozen=True):
    """How much the terms of pods that are on nodes already count when another is placed."""

    hard_pod_affinity_weight: int = 1  # of each affinity term that they require
    ignore_preferred_terms_of_existing_pods: bool = False  # unless the new pod has some as well

    def __post_init__(self) -> None:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= MAX_WEIGHT:
            raise ValueError(
                f"hardPodAffinityWeight: Invalid value: {weight}:"
                f" not in valid range [0, {MAX_WEIGHT}]"
            )

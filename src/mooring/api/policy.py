"""The policy group: disruption budgets, which preemption tries to respect."""

from typing import ClassVar

from mooring.api.frozen import EMPTY, FrozenDict
from mooring.api.meta import Condition, LabelSelector, Object, Value


class PodDisruptionBudgetSpec(Value, frozen=True, kw_only=True):
    """How many of the selected pods must stay, or may go: a number, or a percentage as text."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Value, frozen=True, kw_only=True):
    """How many pods may be disrupted now; `disrupted_pods` are on their way out, by time."""

    observed_generation: int = 0
    disrupted_pods: FrozenDict[str, str] = EMPTY
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object, frozen=True, kw_only=True):
    """A limit on how many pods of a set may be taken down on purpose at once."""

    API_VERSION: ClassVar[str] = "policy/v1"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()

"""The scheduling.k8s.io group: priority classes."""

from typing import ClassVar

from mooring.api.meta import Object


class PriorityClass(Object, frozen=True, kw_only=True):
    """A named priority; at most one class is the default for pods that name none."""

    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None

"""The apps group: the owners whose selectors default topology spreading follows."""

from typing import ClassVar

from mooring.api.meta import LabelSelector, Object, Value


class ReplicaSetSpec(Value, frozen=True, kw_only=True):
    """The pods a replica set keeps alive."""

    replicas: int | None = None
    selector: LabelSelector | None = None


class ReplicaSet(Object, frozen=True, kw_only=True):
    """A number of equal pods."""

    API_VERSION: ClassVar[str] = "apps/v1"

    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(Value, frozen=True, kw_only=True):
    """The pods a stateful set keeps alive."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    service_name: str = ""


class StatefulSet(Object, frozen=True, kw_only=True):
    """A number of numbered pods."""

    API_VERSION: ClassVar[str] = "apps/v1"

    spec: StatefulSetSpec = StatefulSetSpec()

"""A pod as the scheduler sees it: the API object plus what is computed from it once.

Made when a pod enters through a watch; read everywhere; changed nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import structs

from mooring.api import core
from mooring.api.meta import ObjectMeta
from mooring.api.requests import (
    CPU,
    HostPort,
    host_ports,
    is_counted,
    pod_nonzero_requests,
    pod_requests,
)

Amounts = Mapping[str, int]
"""Resource name -> milli-CPU for cpu, whole units for all else."""

_set: Final = object.__setattr__
_COMPUTED: Final = ("_requests", "_usage", "_nonzero", "_usage_nonzero", "_host_ports")


def counted_amounts(pod: core.Pod, *, use_status: bool) -> Amounts:
    """What a pod asks for, in the units of the columns, of the resources a scheduler counts."""
    return MappingProxyType(
        {
            resource: quantity.milli if resource == CPU else quantity.value
            for resource, quantity in pod_requests(pod, use_status=use_status).items()
            if is_counted(resource)
        }
    )


class Pod:
    """One pod, read-only.

    `requests` is what the pod asks for when it is to be placed; `usage` is what it occupies once
    on a node, where an in-place resize may hold more than the spec says.
    """

    __slots__ = (
        "_host_ports",
        "_nonzero",
        "_requests",
        "_usage",
        "_usage_nonzero",
        "api",
        "key",
        "labels",
        "name",
        "namespace",
        "node_name",
        "priority",
        "uid",
    )

    api: core.Pod
    name: str
    namespace: str
    key: str
    uid: str
    labels: Mapping[str, str]
    node_name: str
    priority: int
    _requests: Amounts | None
    _usage: Amounts | None
    _nonzero: tuple[int, int] | None
    _usage_nonzero: tuple[int, int] | None
    _host_ports: tuple[HostPort, ...] | None

    def __init__(self, api: core.Pod) -> None:
        meta = api.metadata
        spec = api.spec
        _set(self, "api", api)
        _set(self, "name", meta.name)
        _set(self, "namespace", meta.namespace)
        _set(self, "key", f"{meta.namespace}/{meta.name}")
        _set(self, "uid", meta.uid or f"{meta.namespace}/{meta.name}")
        _set(self, "labels", meta.labels)
        _set(self, "node_name", spec.node_name)
        _set(self, "priority", spec.priority or 0)
        for computed in _COMPUTED:
            _set(self, computed, None)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Pod {self.key} is read-only: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Pod {self.key} is read-only: cannot delete {name!r}")

    def __repr__(self) -> str:
        return f"Pod({self.key!r})"

    @property
    def spec(self) -> core.PodSpec:
        return self.api.spec

    @property
    def status(self) -> core.PodStatus:
        return self.api.status

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.api.metadata.annotations

    @property
    def scheduler_name(self) -> str:
        return self.api.spec.scheduler_name

    @property
    def is_terminating(self) -> bool:
        return self.api.metadata.deletion_timestamp is not None

    @property
    def is_finished(self) -> bool:
        """Succeeded or Failed: occupies nothing any more."""
        return self.api.status.phase in ("Succeeded", "Failed")

    @property
    def nominated_node_name(self) -> str:
        return self.api.status.nominated_node_name

    @property
    def all_requests(self) -> Amounts:
        found = self._requests
        if found is None:
            found = counted_amounts(self.api, use_status=False)
            _set(self, "_requests", found)
        return found

    def requests(self, resource: str) -> int:
        """What the pod asks for: milli-CPU for "cpu", whole units for all else; 0 if nothing."""
        return self.all_requests.get(resource, 0)

    @property
    def usage(self) -> Amounts:
        """What the pod occupies on its node."""
        found = self._usage
        if found is None:
            found = self._measure_usage()
            _set(self, "_usage", found)
        return found

    @property
    def nonzero_requests(self) -> tuple[int, int]:
        """milli-CPU and bytes of memory, with a default for containers that ask for nothing."""
        found = self._nonzero
        if found is None:
            found = pod_nonzero_requests(self.api)
            _set(self, "_nonzero", found)
        return found

    @property
    def nonzero_usage(self) -> tuple[int, int]:
        """As `nonzero_requests`, for a pod on its node."""
        found = self._usage_nonzero
        if found is None:
            if self._was_measured:
                found = pod_nonzero_requests(self.api, use_status=True)
            else:
                found = self.nonzero_requests
            _set(self, "_usage_nonzero", found)
        return found

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        found = self._host_ports
        if found is None:
            found = host_ports(self.api)
            _set(self, "_host_ports", found)
        return found

    def assumed_on(self, node_name: str) -> Pod:
        """This pod as if it were bound already."""
        spec = structs.replace(self.api.spec, node_name=node_name)
        assumed = Pod(structs.replace(self.api, spec=spec))
        for computed in _COMPUTED:  # none of it depends on the node
            _set(assumed, computed, getattr(self, computed))
        return assumed

    def weighs_like(self, other: Pod) -> bool:
        """Whether it counts on a node exactly as another state of it does.

        Its status does not matter, unless a kubelet reports another use of resources there.
        """
        mine, theirs = self.api, other.api
        if mine.spec != theirs.spec or not _look_alike(mine.metadata, theirs.metadata):
            return False
        if self._was_measured or other._was_measured:
            return self.usage == other.usage and self.nonzero_usage == other.nonzero_usage
        for computed in _COMPUTED:
            _set(self, computed, getattr(other, computed))
        return True

    @property
    def _was_measured(self) -> bool:
        status = self.api.status
        containers = status.container_statuses or status.init_container_statuses
        return bool(containers) or status.resources is not None

    def _measure_usage(self) -> Amounts:
        # Only a kubelet's report can make usage differ from the spec.
        if self._was_measured:
            return counted_amounts(self.api, use_status=True)
        return self.all_requests


def _look_alike(one: ObjectMeta, other: ObjectMeta) -> bool:
    """Whether what anybody may select pods by is the same."""
    return (
        one.labels == other.labels
        and one.annotations == other.annotations
        and one.deletion_timestamp == other.deletion_timestamp
        and one.owner_references == other.owner_references
    )

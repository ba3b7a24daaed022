"""A pod as the scheduler sees it: the API object plus what is computed from it once.

Made when a pod enters through a watch; read everywhere; changed nowhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import structs

from mooring.api import core
from mooring.api.frozen import EMPTY, FrozenDict
from mooring.api.meta import ObjectMeta
from mooring.api.requests import (
    CPU,
    PODS,
    HostPort,
    container_images,
    host_ports,
    is_counted,
    pod_nonzero_requests,
    pod_requests,
)

Amounts = Mapping[str, int]
"""Resource name -> milli-CPU for cpu, whole units for all else."""


def counted_amounts(pod: core.Pod, *, use_status: bool) -> Amounts:
    """What a pod asks for, in the units of the columns, of the resources a scheduler counts."""
    return MappingProxyType(
        {
            resource: quantity.milli if resource == CPU else quantity.value
            for resource, quantity in pod_requests(pod, use_status=use_status).items()
            if is_counted(resource) and resource != PODS  # a pod is one, whatever it says
        }
    )


class _Footprint:
    """What is computed from a pod on first use: requests, usage, host ports, images.

    It does not depend on the node, so states of a pod with the same footprint share one.
    """

    __slots__ = ("host_ports", "images", "nonzero", "requests", "usage", "usage_nonzero")

    def __init__(self) -> None:
        self.images: tuple[str, ...] | None = None
        self.requests: Amounts | None = None
        self.usage: Amounts | None = None
        self.nonzero: tuple[int, int] | None = None
        self.usage_nonzero: tuple[int, int] | None = None
        self.host_ports: tuple[HostPort, ...] | None = None


class _MutablePod:
    """A pod that is being made: the attributes can be set."""

    __slots__ = (
        "_footprint",
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
    _footprint: _Footprint


class Pod(_MutablePod):
    """One pod, read-only.

    `requests` is what the pod asks for when it is to be placed; `usage` is what it occupies once
    on a node, where an in-place resize may hold more than the spec says.
    """

    __slots__ = ()

    def __new__(cls, api: core.Pod) -> Pod:
        return cls._made(api, _Footprint())

    @classmethod
    def _made(cls, api: core.Pod, footprint: _Footprint) -> Pod:
        # Set on an instance of the base class, which then becomes a Pod: several are made per
        # attempt, and `object.__setattr__` for every attribute takes three times as long.
        pod = _MutablePod()
        meta, spec = api.metadata, api.spec
        pod.api = api
        pod.name = name = meta.name
        pod.namespace = namespace = meta.namespace
        pod.key = key = f"{namespace}/{name}"
        pod.uid = meta.uid or key
        pod.labels = meta.labels
        pod.node_name = spec.node_name
        pod.priority = spec.priority or 0
        pod._footprint = footprint
        pod.__class__ = cls
        assert isinstance(pod, Pod)
        return pod

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
        footprint = self._footprint
        if footprint.requests is None:
            footprint.requests = counted_amounts(self.api, use_status=False)
        return footprint.requests

    def requests(self, resource: str) -> int:
        """What the pod asks for: milli-CPU for "cpu", whole units for all else; 0 if nothing."""
        return self.all_requests.get(resource, 0)

    @property
    def usage(self) -> Amounts:
        """What the pod occupies on its node."""
        footprint = self._footprint
        if footprint.usage is None:
            # Only a kubelet's report can make usage differ from the spec.
            if self._was_measured:
                footprint.usage = counted_amounts(self.api, use_status=True)
            else:
                footprint.usage = self.all_requests
        return footprint.usage

    def usage_of(self, resource: str) -> int:
        """What the pod takes of a resource of its node; of "pods", one."""
        return 1 if resource == PODS else self.usage.get(resource, 0)

    @property
    def nonzero_requests(self) -> tuple[int, int]:
        """milli-CPU and bytes of memory, with a default for containers that ask for nothing."""
        footprint = self._footprint
        if footprint.nonzero is None:
            footprint.nonzero = pod_nonzero_requests(self.api)
        return footprint.nonzero

    @property
    def nonzero_usage(self) -> tuple[int, int]:
        """As `nonzero_requests`, for a pod on its node."""
        footprint = self._footprint
        if footprint.usage_nonzero is None:
            if self._was_measured:
                footprint.usage_nonzero = pod_nonzero_requests(self.api, use_status=True)
            else:
                footprint.usage_nonzero = self.nonzero_requests
        return footprint.usage_nonzero

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        footprint = self._footprint
        if footprint.host_ports is None:
            footprint.host_ports = host_ports(self.api)
        return footprint.host_ports

    @property
    def images(self) -> tuple[str, ...]:
        """The images it needs, with their tags, as nodes report those that they have."""
        footprint = self._footprint
        if footprint.images is None:
            footprint.images = container_images(self.api)
        return footprint.images

    def assumed_on(self, node_name: str, labels: Mapping[str, str] = EMPTY) -> Pod:
        """This pod as if it were bound already, with labels that come from its node."""
        meta, spec = self.api.metadata, structs.replace(self.api.spec, node_name=node_name)
        if labels:
            meta = structs.replace(meta, labels=FrozenDict({**meta.labels, **labels}))
        return self._made(structs.replace(self.api, metadata=meta, spec=spec), self._footprint)

    def share_footprint(self, other: Pod) -> None:
        """Take over what was computed for another pod, whose spec is the same where it counts."""
        if not (self._was_measured or other._was_measured):
            object.__setattr__(self, "_footprint", other._footprint)

    def has_same_footprint(self, other: Pod) -> bool:
        """Whether it counts on a node exactly as another state of it does.

        Its status does not matter, unless a kubelet reports another use of resources there.
        """
        mine, theirs = self.api, other.api
        if mine.spec is not theirs.spec and mine.spec != theirs.spec:
            return False
        if not _look_alike(mine.metadata, theirs.metadata):
            return False
        measured = self._was_measured or other._was_measured
        if measured and not _report_alike(mine.status, theirs.status):
            return self.usage == other.usage and self.nonzero_usage == other.nonzero_usage
        object.__setattr__(self, "_footprint", other._footprint)
        return True

    @property
    def _was_measured(self) -> bool:
        status = self.api.status
        containers = status.container_statuses or status.init_container_statuses
        return bool(containers) or status.resources is not None


class Footprints:
    """Gives pods that count alike one footprint, as long as all of these pods are kept.

    Parts of pods that were listed together are the same objects where they are equal.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _Footprint] = {}

    def share(self, pod: Pod) -> None:
        """Take a footprint over from another pod, or compute it."""
        known = self._known.setdefault(_countable(pod.api), pod._footprint)
        object.__setattr__(pod, "_footprint", known)
        _ = pod.usage, pod.nonzero_usage, pod.host_ports


def _countable(pod: core.Pod) -> Hashable:
    """Equal for pods with equal footprints; not the other way round: parts are compared by id."""
    spec, status = pod.spec, pod.status
    statuses = (*status.container_statuses, *status.init_container_statuses)
    return (
        _containers(spec.containers),
        _containers(spec.init_containers) if spec.init_containers else (),
        tuple([v.image for v in spec.volumes if v.image is not None]) if spec.volumes else (),
        (id(spec.overhead), id(spec.resources), id(status.resources)),
        id(status.allocated_resources),
        tuple([(s.name, _granted(s), id(s.allocated_resources)) for s in statuses]),
        tuple(_resize_reasons(status)),
    )


def _granted(status: core.ContainerStatus) -> Hashable:
    return status.resources and id(status.resources.requests)


def _containers(containers: tuple[core.Container, ...]) -> Hashable:
    return tuple(
        [(c.name, c.image, c.restart_policy, id(c.resources), id(c.ports)) for c in containers]
    )


def _report_alike(one: core.PodStatus, other: core.PodStatus) -> bool:
    """Whether two statuses are equal in all that can change what a pod counts on its node."""
    return (
        _grant_alike(one.container_statuses, other.container_statuses)
        and _grant_alike(one.init_container_statuses, other.init_container_statuses)
        and one.resources == other.resources
        and one.allocated_resources == other.allocated_resources
        and _resize_reasons(one) == _resize_reasons(other)
    )


def _grant_alike(
    some: tuple[core.ContainerStatus, ...], others: tuple[core.ContainerStatus, ...]
) -> bool:
    if len(some) != len(others):
        return False
    for one, other in zip(some, others, strict=True):
        if (
            one.name != other.name
            or one.resources != other.resources
            or one.allocated_resources != other.allocated_resources
        ):
            return False
    return True


def _resize_reasons(status: core.PodStatus) -> list[str]:
    return [c.reason for c in status.conditions if c.type == "PodResizePending"]


def _look_alike(one: ObjectMeta, other: ObjectMeta) -> bool:
    """Whether two states of a pod are equal in all that plugins and selectors read of metadata."""
    return (
        one.labels == other.labels
        and one.annotations == other.annotations
        and one.deletion_timestamp == other.deletion_timestamp
        and one.owner_references == other.owner_references
    )

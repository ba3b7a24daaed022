"""How much a pod asks of a node: resources, host ports and images.

Everything is computed with exact quantities and rounded once at the end, as the scheduler's
NodeInfo does. The cache counts what a pod takes with these; plugins compare it with what is left.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from mooring.api._names import is_qualified_name
from mooring.api.core import Container, Pod
from mooring.api.quantity import Format, Quantity, parse_quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

# The requests of a container without any, for scoring.
DEFAULT_REQUESTS: Final[Mapping[str, Quantity]] = {
    CPU: parse_quantity("100m"),
    MEMORY: parse_quantity("200Mi"),
}

_Amounts = Mapping[str, Quantity]

is_resource_name: Final = is_qualified_name


class HostPort(NamedTuple):
    """A port of the node that a pod takes for itself."""

    ip: str
    protocol: str
    port: int


def pod_requests(
    pod: Pod, *, use_status: bool = False, pod_level: bool = True
) -> dict[str, Quantity]:
    """The pod's effective requests, as component-helpers' resource.PodRequests.

    With `use_status`, a container that was resized in place counts as the most it may hold; that is
    for pods on nodes. Without `pod_level`, requests of the pod as a whole are left out.
    """
    return _pod_requests(pod, {}, use_status, pod_level)


def pod_nonzero_requests(
    pod: Pod, use_status: bool = False, *, pod_level: bool = True
) -> tuple[int, int]:
    """Milli-CPU and bytes of memory, with `DEFAULT_REQUESTS` for containers that name none.

    An explicit zero stays zero. With requests for the pod as a whole, a default applies only to a
    resource that nothing in the pod mentions.
    """
    if _is_plain(pod) and not use_status:
        asked = pod.spec.containers[0].resources.requests
        cpu = asked[CPU] if CPU in asked else DEFAULT_REQUESTS[CPU]
        memory = asked[MEMORY] if MEMORY in asked else DEFAULT_REQUESTS[MEMORY]
        return cpu.milli, memory.value
    defaults: _Amounts = DEFAULT_REQUESTS
    if pod_level and _pod_level_requests(pod):
        named = _pod_requests(pod, {}, use_status, pod_level)
        defaults = {name: q for name, q in DEFAULT_REQUESTS.items() if name not in named}
    total = _pod_requests(pod, defaults, use_status, pod_level)
    return total.get(CPU, Quantity.ZERO).milli, total.get(MEMORY, Quantity.ZERO).value


def amount(resource: str, quantity: Quantity) -> int:
    """The integer a resource is counted in: thousandths for cpu, whole units for all others."""
    return quantity.milli if resource == CPU else quantity.value


def quantity_of(resource: str, units: int) -> Quantity:
    """The quantity of an `amount`: bytes of memory and storage print as 4Gi, other units as 4."""
    if resource == CPU:
        return Quantity(units * 10**6)
    is_bytes = resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-")
    return Quantity(units * 10**9, Format.BINARY_SI if is_bytes else Format.DECIMAL_SI)


@lru_cache(maxsize=4096)  # a cluster knows few names and asks about each of them all the time
def is_counted(resource: str) -> bool:
    """Whether nodes keep account of this resource; other names are ignored."""
    if resource in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS):
        return True
    return is_scalar(resource)


def is_scalar(resource: str) -> bool:
    """True for extended, hugepages, attachable-volumes and kubernetes.io/ resources."""
    if "kubernetes.io/" in resource or resource.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return is_extended(resource)


def is_extended(resource: str) -> bool:
    """True for an extended resource, such as `nvidia.com/gpu`."""
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    # A quota for it is called requests.<name>, and that has to be a valid name too.
    return is_qualified_name(f"requests.{resource}")


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Node ports taken by containers and sidecars, in order; empty addresses mean all of them."""
    taken = [
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in _lasting_containers(pod)
        for port in container.ports
        if port.host_port > 0
    ]
    return tuple(taken)


def container_images(pod: Pod) -> tuple[str, ...]:
    """Normalised images the pod pulls: init containers, containers, then image volumes."""
    spec = pod.spec
    containers = [c.image for c in (*spec.init_containers, *spec.containers)]
    volumes = [v.image.reference for v in spec.volumes if v.image is not None]
    return tuple(normalized_image(image) for image in (*containers, *volumes))


def normalized_image(image: str) -> str:
    """The image with its tag: nodes report `nginx:latest` where a pod says `nginx`."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _lasting_containers(pod: Pod) -> tuple[Container, ...]:
    spec = pod.spec
    if not spec.init_containers:
        return spec.containers
    return (*spec.containers, *(c for c in spec.init_containers if c.is_restartable))


def _pod_requests(
    pod: Pod, defaults: _Amounts, use_status: bool, pod_level: bool
) -> dict[str, Quantity]:
    if not use_status and _is_plain(pod):
        return {**defaults, **pod.spec.containers[0].resources.requests}
    asked = _container_requests(pod, use_status)
    total: dict[str, Quantity] = {}
    for container in pod.spec.containers:
        _add(total, {**defaults, **asked(container)})

    # While the i-th init container runs, the sidecars started before it run too.
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in pod.spec.init_containers:
        own = {**defaults, **asked(container)}
        if container.is_restartable:
            _add(total, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(total, peak)

    if pod_level:
        total.update(_effective_pod_level(pod, use_status))
    _add(total, pod.spec.overhead)
    return total


def _is_plain(pod: Pod) -> bool:
    """One container and nothing to add to it, as most pods are."""
    spec = pod.spec
    return len(spec.containers) == 1 and not (
        spec.init_containers or spec.overhead or spec.resources is not None
    )


def _container_requests(pod: Pod, use_status: bool) -> Callable[[Container], _Amounts]:
    """How to look up what one container asks for."""
    if not use_status:
        return lambda container: container.resources.requests
    status = pod.status
    granted = {
        s.name: s
        for s in (*status.container_statuses, *status.init_container_statuses)
        if s.resources is not None
    }
    lasting = {c.name for c in _lasting_containers(pod)}

    def look_up(container: Container) -> _Amounts:
        report = granted.get(container.name)
        if report is None or report.resources is None or container.name not in lasting:
            return container.resources.requests
        return _largest(
            pod,
            container.resources.requests,
            report.resources.requests,
            report.allocated_resources,
        )

    return look_up


def _pod_level_requests(pod: Pod) -> dict[str, Quantity]:
    if pod.spec.resources is None:
        return {}
    return {
        name: quantity
        for name, quantity in pod.spec.resources.requests.items()
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }


def _effective_pod_level(pod: Pod, use_status: bool) -> dict[str, Quantity]:
    asked = _pod_level_requests(pod)
    if not asked or not use_status or pod.status.resources is None:
        return asked
    largest = _largest(pod, asked, pod.status.resources.requests, pod.status.allocated_resources)
    return {name: largest.get(name, Quantity.ZERO) for name in asked}


def _largest(pod: Pod, spec: _Amounts, actuated: _Amounts, allocated: _Amounts) -> _Amounts:
    """The most a resize in progress may hold; an infeasible one will never reach its spec."""
    largest: dict[str, Quantity] = {} if _resize_is_infeasible(pod) else dict(spec)
    _raise_to(largest, actuated)
    _raise_to(largest, allocated)
    return largest


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _add(total: dict[str, Quantity], more: _Amounts) -> None:
    for name, quantity in more.items():
        total[name] = total[name] + quantity if name in total else quantity


def _raise_to(total: dict[str, Quantity], floor: _Amounts) -> None:
    for name, quantity in floor.items():
        if name not in total or quantity > total[name]:
            total[name] = quantity

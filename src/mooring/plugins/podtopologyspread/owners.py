"""The selector of default constraints, from the services and the controller of a pod."""

from mooring.api import apps, core
from mooring.api.meta import LabelSelector
from mooring.api.selectors import Selector, SelectorError
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod


def default_selector(objects: Objects, pod: Pod) -> Selector:
    """What the pod's services and its controller select, as helper.DefaultSelector.

    Empty if none of them selects the pod.
    """
    labels: dict[str, str] = {}
    for service in objects.in_namespace(core.Service, pod.namespace):
        if service.spec.selector.items() <= pod.labels.items():
            labels |= service.spec.selector
    owner = pod.api.metadata.controller
    if owner is None:
        return Selector.from_map(labels)
    match owner.api_version, owner.kind:
        case "v1", "ReplicationController":
            controller = objects.get(core.ReplicationController, owner.name, pod.namespace)
            if controller is not None:
                labels |= controller.spec.selector
        case "apps/v1", "ReplicaSet":
            replica_set = objects.get(apps.ReplicaSet, owner.name, pod.namespace)
            if replica_set is not None:
                return _narrowed(Selector.from_map(labels), replica_set.spec.selector)
        case "apps/v1", "StatefulSet":
            stateful_set = objects.get(apps.StatefulSet, owner.name, pod.namespace)
            if stateful_set is not None:
                return _narrowed(Selector.from_map(labels), stateful_set.spec.selector)
    return Selector.from_map(labels)


def _narrowed(selector: Selector, raw: LabelSelector | None) -> Selector:
    try:
        return selector.requiring(Selector.from_label_selector(raw).requirements)
    except SelectorError:  # then the selectors of the services count alone
        return selector

"""The columns of networking, autoscaling and admission objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    layout,
    name_of,
    part,
    selector_text,
)

_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"
_MOST: Final = 3  # ports, endpoints or hosts in a cell
_MOST_METRICS: Final = 2


def _slice(value: Object, now: float) -> Cells:
    ports = [str(port.get("port", port.get("name", "*"))) for port in value.get("ports") or ()]
    endpoints = value.get("endpoints") or ()
    addresses = [address for one in endpoints for address in one.get("addresses") or ()]
    return {"Ports": _listed(ports), "Endpoints": _listed(addresses)}


def _listed(texts: Sequence[str]) -> str:
    if not texts:
        return UNSET
    shown = ",".join(texts[:_MOST])
    return f"{shown} + {len(texts) - _MOST} more..." if len(texts) > _MOST else shown


def _ingress(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    rules = spec.get("rules") or ()
    return {
        "Class": spec.get("ingressClassName", NONE),
        "Hosts": _hosts(rules),
        "Address": _address(part(value, "status", "loadBalancer").get("ingress") or ()),
        "Ports": "80, 443" if spec.get("tls") else "80",
    }


def _hosts(rules: Sequence[Object]) -> str:
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    if not hosts:
        return "*"
    shown = ",".join(hosts[:_MOST])
    return f"{shown} + {len(rules) - _MOST} more..." if len(hosts) > _MOST else shown


def _address(places: Iterable[Object]) -> str:
    found = {place.get("ip") or place.get("hostname") or "" for place in places}
    return ",".join(sorted(found - {""}))


def _ingress_class(value: Object, now: float) -> Cells:
    annotations = value["metadata"].get("annotations") or {}
    is_default = annotations.get(_DEFAULT_CLASS) == "true"
    parameters = part(value, "spec").get("parameters")
    shown = NONE
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    name = name_of(value)
    return {"Name": f"{name} (default)" if is_default else name, "Parameters": shown}


def _network_policy(value: Object, now: float) -> Cells:
    return {"Pod-Selector": selector_text(part(value, "spec").get("podSelector")) or NONE}


def _webhooks(value: Object, now: float) -> Cells:
    return {"Webhooks": len(value.get("webhooks") or ())}


def _policy(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    kind = spec.get("paramKind")
    shown = UNSET
    if kind is not None:
        shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    return {
        "Validations": len(spec.get("validations") or ()),
        "Mutations": len(spec.get("mutations") or ()),
        "ParamKind": shown,
    }


def _policy_binding(value: Object, now: float) -> Cells:
    reference = part(value, "spec").get("paramRef")
    shown = UNSET
    if reference is not None:
        shown = f"{reference.get('namespace') or '*'}/{reference.get('name', '')}"
        if not reference.get("name"):
            shown = _go_selector(reference.get("selector") or {})
    return {"ParamRef": shown}


def _go_selector(selector: Object) -> str:
    """A label selector as Go prints the struct."""
    labels = "".join(
        f"{key}: {text}," for key, text in sorted(part(selector, "matchLabels").items())
    )
    tests = "".join(
        f"LabelSelectorRequirement{{Key:{test.get('key', '')},Operator:{test.get('operator', '')},"
        f"Values:[{' '.join(test.get('values') or ())}],}},"
        for test in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{tests}}},}}"
    )


# --- autoscaling ----------------------------------------------------------------------------------


def _autoscaler(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    target = part(spec, "scaleTargetRef")
    now_seen = part(value, "status").get("currentMetrics") or []
    metrics = [
        _metric(metric, now_seen[index] if index < len(now_seen) else {})
        for index, metric in enumerate(spec.get("metrics") or ())
    ]
    text = ", ".join(metrics[:_MOST_METRICS])
    if len(metrics) > _MOST_METRICS:
        text += f" + {len(metrics) - _MOST_METRICS} more..."
    return {
        "Reference": f"{target.get('kind', '')}/{target.get('name', '')}",
        "Targets": text or NONE,
        "MinPods": str(spec.get("minReplicas", UNSET)),
    }


def _metric(metric: Object, seen: Object) -> str:
    kind = metric.get("type", "")
    place = kind[:1].lower() + kind[1:]
    source, current = part(metric, place), part(seen, place, "current")
    target = part(source, "target")
    if kind in ("Resource", "ContainerResource"):
        if "averageValue" in target:
            values = f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']}"
        else:
            values = f"{_percent(current, UNKNOWN)}/{_percent(target, '<auto>')}"
        return f"{source.get('name', '')}: {values}"
    if kind == "Pods":
        return f"{current.get('averageValue', UNKNOWN)}/{target.get('averageValue', '0')}"
    if kind not in ("External", "Object"):
        return "<unknown type>"
    if "averageValue" in target:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    return f"{current.get('value', UNKNOWN)}/{target.get('value', '0')}"


def _percent(holder: Object, otherwise: str) -> str:
    found = holder.get("averageUtilization")
    return otherwise if found is None else f"{found}%"


_WEBHOOKS: Final = layout("Name, Webhooks:integer, Age", _webhooks)
_POLICY_BINDING: Final = layout("Name, PolicyName=spec.policyName, ParamRef, Age", _policy_binding)
COLUMNS: Final = {
    "mutatingadmissionpolicies.admissionregistration.k8s.io": layout(
        "Name, Mutations:integer, ParamKind, Age", _policy
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY_BINDING,
    "validatingadmissionpolicies.admissionregistration.k8s.io": layout(
        "Name, Validations:integer, ParamKind, Age", _policy
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY_BINDING,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "horizontalpodautoscalers.autoscaling": layout(
        "Name, Reference, Targets, MinPods, MaxPods=spec.maxReplicas|0, "
        "Replicas=status.currentReplicas|0, Age",
        _autoscaler,
    ),
    "endpointslices.discovery.k8s.io": layout(
        "Name, AddressType=addressType, Ports, Endpoints, Age", _slice
    ),
    "ingressclasses.networking.k8s.io": layout(
        "Name, Controller=spec.controller, Parameters, Age", _ingress_class
    ),
    "ingresses.networking.k8s.io": layout("Name, Class, Hosts, Address, Ports, Age", _ingress),
    "networkpolicies.networking.k8s.io": layout("Name, Pod-Selector, Age", _network_policy),
}
"""The columns of these kinds, by the key of their resource."""

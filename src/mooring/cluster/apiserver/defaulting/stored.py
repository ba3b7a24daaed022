"""Defaults of kinds that are stored and not acted on: networking, autoscaling, admission."""

from __future__ import annotations

from typing import Final

from mooring.cluster.apiserver.defaulting.pods import fill, fill_empty
from mooring.cluster.apiserver.store import Object

_CPU_UTILIZATION: Final = 80  # percent, of an autoscaler without metrics
_POLICY_PERIOD: Final = 15  # seconds
_PERCENT_POLICY: Final = {"type": "Percent", "value": 100, "periodSeconds": _POLICY_PERIOD}
_PODS_POLICY: Final = {"type": "Pods", "value": 4, "periodSeconds": _POLICY_PERIOD}


def set_defaults_network_policy(value: Object) -> None:
    spec = value.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            port.setdefault("protocol", "TCP")


def set_defaults_ingress_class(value: Object) -> None:
    parameters = value.get("spec", {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def set_defaults_autoscaler(value: Object) -> None:
    spec = value.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _CPU_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        up = behavior.setdefault("scaleUp", {})
        fill(up, stabilizationWindowSeconds=0, selectPolicy="Max")
        up.setdefault("policies", [dict(_PODS_POLICY), dict(_PERCENT_POLICY)])
        down = behavior.setdefault("scaleDown", {})
        fill(down, selectPolicy="Max")
        down.setdefault("policies", [dict(_PERCENT_POLICY)])


def set_defaults_policy(value: Object) -> None:
    spec = value.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _set_match_defaults(spec.get("matchConstraints"))


def set_defaults_policy_binding(value: Object) -> None:
    _set_match_defaults(value.setdefault("spec", {}).get("matchResources"))


def _set_match_defaults(match: Object | None) -> None:
    if match is not None:
        fill(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
        for part in ("resourceRules", "excludeResourceRules"):
            for rule in match.get(part, ()):
                rule.setdefault("scope", "*")


def set_defaults_validating_webhooks(value: Object) -> None:
    for webhook in value.get("webhooks", ()):
        fill(
            webhook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
        )
        for rule in webhook.get("rules", ()):
            rule.setdefault("scope", "*")
        service = webhook.get("clientConfig", {}).get("service")
        if service is not None:
            fill_empty(service, port=443)


def set_defaults_mutating_webhooks(value: Object) -> None:
    set_defaults_validating_webhooks(value)
    for webhook in value.get("webhooks", ()):
        webhook.setdefault("reinvocationPolicy", "Never")

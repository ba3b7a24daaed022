"""ConfigMap, Deployment, PodDisruptionBudget and Service of a scheduler."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import yaml

from mooring import config as cfg
from mooring.api.wellknown import HOSTNAME, ZONE
from mooring.cli.manifests.labels import labels, metadata, selector
from mooring.cli.manifests.options import Release
from mooring.cli.manifests.rbac_objects import Object
from mooring.config.source import dump_yaml

CONFIG_FILE: Final = "config.yaml"

_FOLDER: Final = "/etc/mooring"
_PORT: Final = 10259
_USER: Final = 65532  # "nonroot" in most small images, ours included
# --shutdown-grace-period, then Events and the lease, and some time for the signal to arrive.
_GRACE: Final = 30  # seconds
_ALWAYS: Final = ("apiVersion", "kind", "leaderElection", "profiles")


def workload(release: Release) -> list[Object]:
    """The objects, in the order above."""
    text = config_text(release.config)
    configured = [_config_map(release, text), _deployment(release, text)]
    return [*configured, _budget(release), _service(release)]


def config_text(config: cfg.KubeSchedulerConfiguration) -> str:
    """The configuration as a file: names are stated, defaults are left out."""
    full, usual = _document(config), _document(cfg.default_configuration())
    kept = {key: value for key, value in full.items() if key in _ALWAYS or value != usual.get(key)}
    if "enableProfiling" in kept:  # what is unset would follow it
        kept["enableContentionProfiling"] = full["enableContentionProfiling"]
    election = full["leaderElection"]
    names = ("resourceName", "resourceNamespace") if election["leaderElect"] else ()
    lease = {**usual["leaderElection"], "resourceName": full["profiles"][0]["schedulerName"]}
    kept["leaderElection"] = _unusual(election, lease, ("leaderElect", *names))
    if "clientConnection" in kept:
        kept["clientConnection"] = _unusual(full["clientConnection"], usual["clientConnection"])
    if "extenders" in kept:
        kept["extenders"] = [_brief(extender) for extender in kept["extenders"]]
    return dump_yaml(kept)


def _document(config: cfg.KubeSchedulerConfiguration) -> dict[str, Any]:
    """As plain data, without the default plugins."""
    document: dict[str, Any] = yaml.safe_load(cfg.to_yaml(config, available_plugins=()))
    return document


def _unusual(section: Object, usual: Object, stated: tuple[str, ...] = ()) -> Object:
    return {key: value for key, value in section.items() if key in stated or value != usual[key]}


def _brief(extender: Object) -> Object:
    """Without fields that are empty, zero or false, which are the defaults."""
    tls = extender.get("tlsConfig")
    kept = {key: value for key, value in extender.items() if value}
    if tls is not None:
        kept["tlsConfig"] = {key: value for key, value in tls.items() if value}
    return kept


def _config_map(release: Release, text: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(release.name, release.namespace),
        "data": {CONFIG_FILE: text},
    }


def _deployment(release: Release, text: str) -> Object:
    # Two replicas at a time are fine with leader election, and to be avoided without.
    strategy: Object = {"type": "Recreate"}
    if release.elects:
        rolling = {"maxSurge": 1, "maxUnavailable": 0}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    # A changed ConfigMap changes no pod; a changed annotation rolls out new ones.
    digest = hashlib.sha256(text.encode()).hexdigest()
    template = {
        "metadata": {"labels": labels(release.name), "annotations": {"checksum/config": digest}},
        "spec": _pod(release),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(release.name, release.namespace),
        "spec": {
            "replicas": release.replicas,
            "selector": {"matchLabels": selector(release.name)},
            "strategy": strategy,
            "template": template,
        },
    }


def _pod(release: Release) -> Object:
    # Nothing else of the ConfigMap: modules beside a configuration file can be imported.
    one_file = {"name": release.name, "items": [{"key": CONFIG_FILE, "path": CONFIG_FILE}]}
    important = {"priorityClassName": release.priority_class} if release.priority_class else {}
    return {
        "schedulerName": cfg.DEFAULT_SCHEDULER_NAME,  # it can't place itself
        "serviceAccountName": release.name,
        "automountServiceAccountToken": True,
        **important,
        "terminationGracePeriodSeconds": _GRACE,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [_apart(release, HOSTNAME), _apart(release, ZONE)],
        "containers": [_container(release)],
        "volumes": [{"name": "config", "configMap": one_file}],
    }


def _apart(release: Release, key: str) -> Object:
    """A preferred spread of the replicas over nodes or zones."""
    return {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(release.name)},
        "matchLabelKeys": ["pod-template-hash"],  # those that are being replaced don't count
    }


def _container(release: Release) -> Object:
    plugins = [f"--plugin={path}" for path in release.plugins]
    return {
        "name": "scheduler",
        "image": release.image,
        "imagePullPolicy": "IfNotPresent",  # an image may be on the nodes and nowhere else
        "args": ["run", f"--config={_FOLDER}/{CONFIG_FILE}", "--v=2", *plugins],
        "ports": [{"name": "https", "containerPort": _PORT, "protocol": "TCP"}],
        "startupProbe": _probe("/healthz", period=2, failures=60),
        # Slow answers of a busy process are no reason to restart it.
        "livenessProbe": _probe("/livez", period=10, failures=8),
        "readinessProbe": _probe("/readyz", period=5, failures=3),
        "resources": {
            "requests": {"cpu": "250m", "memory": "512Mi"},
            "limits": {"memory": "2Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "config", "mountPath": _FOLDER, "readOnly": True}],
    }


def _probe(path: str, *, period: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "port": "https", "scheme": "HTTPS"},
        "periodSeconds": period,
        "timeoutSeconds": 15,
        "failureThreshold": failures,
    }


def _budget(release: Release) -> Object:
    # Not `minAvailable`: with one replica it would forbid to drain a node.
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(release.name, release.namespace),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(release.name)}},
    }


def _service(release: Release) -> Object:
    """For metrics; probes go to the pods directly."""
    port = {"name": "https", "port": _PORT, "targetPort": "https", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(release.name, release.namespace),
        "spec": {"selector": selector(release.name), "ports": [port]},
    }

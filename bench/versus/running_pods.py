"""Running pods as they are in a cluster: of a Deployment, and with the status a kubelet reports.

No two of them have the same bytes: names, addresses, times and ids of containers differ, and so
does the volume with the token of the service account.
"""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.controlplane.admin import Object

_TEMPLATES = 50  # Deployments
_TOKEN_FILES = "/var/run/secrets/kubernetes.io/serviceaccount"
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def deployed_pod(i: int, node: str) -> Object:
    """A pod that a node runs, one of many of its Deployment."""
    rng = random.Random(i)
    template = i % _TEMPLATES
    hash_ = _id("template", template)[:10]
    app = f"service-{template:02d}"
    token = f"kube-api-access-{_word(rng, 5)}"
    mount = {"name": token, "mountPath": _TOKEN_FILES, "readOnly": True}
    labels = {"app.kubernetes.io/name": app, "pod-template-hash": hash_, "team": f"t{template % 7}"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{hash_}-{_word(rng, 5)}{i:x}",
            "generateName": f"{app}-{hash_}-",
            "labels": labels,
            "annotations": {
                "prometheus.io/scrape": "true",
                "checksum/config": _id("config", template),
                "kubectl.kubernetes.io/restartedAt": "2026-01-01T08:00:00Z",
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{app}-{hash_}",
                    "uid": _uid("owner", template),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeName": node,
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 0,  # there are no kubelets to end it
            "containers": [_container(template, name, mount) for name in ("main", "proxy")],
            "volumes": [_token_volume(token), {"name": "config", "configMap": {"name": app}}],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{state}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for state in ("not-ready", "unreachable")
            ],
        },
        "status": _status(i),
    }


def _status(i: int) -> dict[str, Any]:
    """What the kubelet of its node says of it."""
    rng = random.Random(i)
    started = _BEGAN + timedelta(seconds=rng.randrange(10**7))
    later = started + timedelta(seconds=rng.randrange(2, 30))
    address = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
    host = f"192.168.{rng.randrange(256)}.{rng.randrange(1, 255)}"
    kinds = {
        "PodReadyToStartContainers": later,
        "Initialized": started,
        "Ready": later,
        "ContainersReady": later,
        "PodScheduled": started,
    }
    return {
        "phase": "Running",
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _time(started),
        "qosClass": "Burstable",
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": _time(at),
                "observedGeneration": 1,
            }
            for kind, at in kinds.items()
        ],
        "containerStatuses": [
            _container_status(i % _TEMPLATES, name, i, later) for name in ("main", "proxy")
        ],
    }


def _container(template: int, name: str, mount: Object) -> Object:
    requests = {"cpu": f"{50 + template}m", "memory": f"{64 + template}Mi"}
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    return {
        "name": name,
        "image": f"registry.example.com/{name}:{template}",
        "args": ["--log-level=info", f"--service={template}"],
        "env": [
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "MODE", "value": "production"},
        ],
        "ports": [{"containerPort": 8080, "name": "http"}] if name == "main" else [],
        "resources": {"requests": requests, "limits": {"memory": f"{256 + template}Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}, mount],
        "readinessProbe": probe,
        "livenessProbe": probe,
    }


def _container_status(template: int, name: str, i: int, started: datetime) -> Object:
    image = f"registry.example.com/{name}"
    requests = {"cpu": f"{50 + template}m", "memory": f"{64 + template}Mi"}
    return {
        "name": name,
        "state": {"running": {"startedAt": _time(started)}},
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": f"{image}:{template}",
        "imageID": f"{image}@sha256:{_id(name, template)}",
        "containerID": f"containerd://{_id(name, i)}",
        "allocatedResources": requests,
        "resources": {"requests": requests, "limits": {"memory": f"{256 + template}Mi"}},
    }


def _token_volume(name: str) -> Object:
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    field = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    namespace = {"items": [{**field, "path": "namespace"}]}
    sources = [token, {"configMap": authority}, {"downwardAPI": namespace}]
    return {"name": name, "projected": {"defaultMode": 420, "sources": sources}}


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _id(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _uid(*parts: object) -> str:
    text = _id(*parts)
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:32]}"


def _word(rng: random.Random, length: int) -> str:
    return "".join(rng.choices(_LETTERS, k=length))

"""Objects with fields of all kinds, as a real API server sends them, are read without trouble."""

from __future__ import annotations

from tests.controlplane.admin import Object
from tests.controlplane.fixtures import on_both
from tests.controlplane.objects import node, pod
from tests.controlplane.plane import Plane
from tests.integration.cluster_reads import wait_until_bound
from tests.integration.mooring_process import NAME, start_mooring


@on_both
def test_pods_with_all_kinds_of_fields_are_placed(control_plane: Plane, namespace: str) -> None:
    admin = control_plane.admin
    admin.create(exotic_node())
    admin.create_many([node("bare", cpu="64"), {**node("empty"), "spec": {}, "status": {}}])
    admin.create_many(surroundings(namespace))
    mooring = start_mooring(control_plane)
    admin.create(exotic_pod(namespace))
    admin.create(pod("plain", namespace=namespace, scheduler=NAME, cpu="", memory=""))
    placed = wait_until_bound(control_plane, namespace)
    assert placed["exotic"] == "exotic"
    metrics = mooring.metrics(control_plane.token)
    unread = metrics["mooring_undecodable_objects_total"].samples
    assert {sample.labels["resource"]: sample.value for sample in unread if sample.value} == {}
    assert not [line for line in mooring.log.splitlines() if line.startswith(("W", "E"))]


def exotic_node() -> Object:
    made = node("exotic", cpu="3920m", memory="32655180Ki", zone="a", taints=["gpu=a:NoSchedule"])
    made["metadata"]["annotations"] = {"volumes.kubernetes.io/attach-detach": "true"}
    made["spec"] |= {
        "podCIDR": "10.0.0.0/24",
        "podCIDRs": ["10.0.0.0/24", "fd00::/64"],
        "providerID": "aws:///a/i-1",
    }
    made["status"] |= {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "features": {"supplementalGroupsPolicy": True},
        "images": [
            {"names": ["registry.example/a@sha256:1", "registry.example/a:1"], "sizeBytes": 10**9},
            {"sizeBytes": 5},
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "b",
            "containerRuntimeVersion": "containerd://2.0",
            "kernelVersion": "6",
            "kubeProxyVersion": "v1.36.0",
            "kubeletVersion": "v1.36.0",
            "machineID": "m",
            "operatingSystem": "linux",
            "osImage": "Linux",
            "systemUUID": "s",
        },
        "runtimeHandlers": [{"name": "runc", "features": {"recursiveReadOnlyMounts": True}}],
        "volumesAttached": [{"name": "kubernetes.io/csi/x^1", "devicePath": "/dev/x"}],
        "volumesInUse": ["kubernetes.io/csi/x^1"],
    }
    made["status"]["allocatable"] |= {
        "ephemeral-storage": "95551679124",
        "example.com/gpu": "4",
        "hugepages-2Mi": "1Gi",
    }
    made["status"]["capacity"] = made["status"]["allocatable"]
    return made


def exotic_pod(namespace: str) -> Object:
    made = pod("exotic", namespace=namespace, scheduler=NAME, labels={"app": "exotic"})
    probe = {"httpGet": {"path": "/", "port": "http", "scheme": "HTTPS"}, "periodSeconds": 3}
    main = made["spec"]["containers"][0]
    main |= {
        "command": ["a"],
        "env": [{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
        "livenessProbe": probe,
        "ports": [{"name": "http", "containerPort": 80, "hostPort": 8080, "protocol": "UDP"}],
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
        "resources": {
            "requests": {"cpu": "0.25", "memory": "1e8", "example.com/gpu": "1"},
            "limits": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"},
        },
        "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}, "runAsUser": 1},
        "volumeMounts": [{"name": "all", "mountPath": "/all"}],
    }
    sidecar = {"name": "sidecar", "image": "x", "restartPolicy": "Always"}
    fast = {"key": "fast", "operator": "NotIn", "values": ["no"]}
    ours = {"labelSelector": {"matchLabels": {"app": "exotic"}}}
    zone = {"topologyKey": "topology.kubernetes.io/zone"}
    made["spec"] |= {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": {"matchExpressions": [fast]}}
                ],
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["exotic"]}
                            ]
                        }
                    ]
                },
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {**zone, **ours, "matchLabelKeys": ["version"], "namespaceSelector": {}}
                ]
            },
        },
        "dnsConfig": {"nameservers": ["10.0.0.2"], "options": [{"name": "ndots", "value": "2"}]},
        "dnsPolicy": "None",
        "initContainers": [sidecar, {"name": "init", "image": "x"}],
        "readinessGates": [{"conditionType": "example.com/ready"}],
        "securityContext": {
            "fsGroup": 5,
            "sysctls": [{"name": "net.core.somaxconn", "value": "1"}],
        },
        "serviceAccountName": "robot",
        "terminationGracePeriodSeconds": 3,
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                **zone,
                **ours,
                "maxSkew": 1,
                "minDomains": 1,
                "nodeTaintsPolicy": "Honor",
                "whenUnsatisfiable": "DoNotSchedule",
            }
        ],
        "volumes": [
            {
                "name": "all",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                        {"configMap": {"name": "none", "optional": True}},
                    ]
                },
            },
            {"name": "empty", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "nfs", "nfs": {"server": "nfs.example", "path": "/"}},
            {"name": "image", "image": {"reference": "registry.example/i:1"}},
        ],
    }
    return made


def surroundings(namespace: str) -> list[Object]:
    """Objects of the other kinds that are watched."""
    here = {"namespace": namespace}
    selector = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    }
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "half", **here},
            "spec": {"selector": selector, "minAvailable": "50%"},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "set", **here},
            "spec": {"serviceName": "s", "selector": selector, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "headless", **here},
            "spec": {"clusterIP": "None", "selector": {"app": "exotic"}, "ports": [{"port": 80}]},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": "exotic"},
            "spec": {
                "drivers": [
                    {
                        "name": "disks.example.com",
                        "nodeID": "n",
                        "topologyKeys": None,
                        "allocatable": {"count": 5},
                    }
                ]
            },
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": "disks.example.com"},
            "spec": {"storageCapacity": True, "attachRequired": False},
        },
    ]

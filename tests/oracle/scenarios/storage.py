"""Volumes: claims in every state of life, what is behind them, and the limits of drivers."""

from __future__ import annotations

from tests.oracle.scenarios.dice import Dice, Object
from tests.oracle.scenarios.objects import names, owned_by, pod
from tests.oracle.scenarios.selectors import HOST, REGION, ZONE

_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
_CLASSES = {  # name -> (provisioner, binding mode)
    "fast": ("csi.example.com", "WaitForFirstConsumer"),
    "topo": ("csi.example.com", "WaitForFirstConsumer"),
    "local": ("kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    "cap": ("local.csi.acme.io", "WaitForFirstConsumer"),
    "now": ("csi.example.com", "Immediate"),
    "ebs": ("ebs.csi.aws.com", "WaitForFirstConsumer"),
}
_DRIVERS = ("csi.example.com", "ebs.csi.aws.com", "local.csi.acme.io")
_MIGRATED = (
    "kubernetes.io/aws-ebs,kubernetes.io/gce-pd,kubernetes.io/azure-disk,kubernetes.io/cinder"
)
_ZONES = ("z1", "z2", "z3")


class Storage:
    """Adds storage objects to a cluster and volumes to its pods."""

    def __init__(self, dice: Dice, cluster: Object) -> None:
        self._dice = dice
        self._cluster = cluster
        self._nodes = names(cluster["nodes"])

    def set_up(self) -> None:
        """Classes, drivers and what each node's drivers can attach."""
        dice = self._dice
        for name, (provisioner, mode) in _CLASSES.items():
            made: Object = {
                "metadata": dice.meta(name),
                "provisioner": provisioner,
                "reclaimPolicy": "Delete",
                "volumeBindingMode": mode,
            }
            if name == "topo" and dice.chance(0.5):
                made["allowedTopologies"] = [self._topology() for _ in range(dice.pick((1, 1, 2)))]
            self._cluster["storageclasses"].append(made)
        for driver in _DRIVERS:
            if dice.chance(0.8):
                spec: Object = {
                    "attachRequired": dice.chance(0.9),
                    "podInfoOnMount": False,
                    "volumeLifecycleModes": ["Persistent"],
                }
                if driver == "local.csi.acme.io" or dice.chance(0.15):
                    spec["storageCapacity"] = dice.chance(0.6)
                self._cluster["csidrivers"].append({"metadata": dice.meta(driver), "spec": spec})
        for node in self._nodes:
            if dice.chance(0.9):
                self._cluster["csinodes"].append(self._csi_node(node))
        if dice.chance(0.3):
            for _ in range(dice.between(1, 4)):
                self._cluster["csistoragecapacities"].append(self._capacity())

    def _topology(self) -> Object:
        dice = self._dice
        expressions = [{"key": ZONE, "values": dice.some(_ZONES, 1, 3)}]
        if dice.chance(0.3):
            expressions.append({"key": "rack", "values": dice.some(("r1", "r2", "r3"), 1, 3)})
        return {"matchLabelExpressions": expressions}

    def _csi_node(self, node: str) -> Object:
        dice = self._dice
        drivers = []
        for name in dice.some(_DRIVERS, 0, 3):
            driver: Object = {"name": name, "nodeID": node, "topologyKeys": None}
            if dice.chance(0.75):
                driver["allocatable"] = {"count": dice.pick((0, 1, 1, 2, 2, 3, 4, 8))}
            drivers.append(driver)
        migrated = {"storage.alpha.kubernetes.io/migrated-plugins": _MIGRATED}
        meta = dice.meta(node, annotations=migrated if dice.chance(0.4) else None)
        return {"metadata": meta, "spec": {"drivers": drivers}}

    def _capacity(self) -> Object:
        dice = self._dice
        made: Object = {
            "metadata": dice.meta(dice.name("csisc"), "kube-system"),
            "storageClassName": dice.pick(("cap", "cap", "cap", "fast")),
            "capacity": dice.pick(("4Gi", "20Gi", "100Gi", "1e10")),
            "nodeTopology": {"matchLabels": {ZONE: dice.pick(_ZONES)}},
        }
        if dice.chance(0.3):
            made["maximumVolumeSize"] = dice.pick(("6Gi", "10Gi", "60Gi"))
        if dice.chance(0.3):
            del made["nodeTopology"]
        elif dice.chance(0.3):
            made["nodeTopology"] = {
                "matchExpressions": [
                    {"key": ZONE, "operator": "In", "values": dice.some(_ZONES, 1, 2)},
                    {"key": "rack", "operator": "Exists"},
                ]
            }
        return made

    def claim(self, namespace: str, storage_class: str, *, size: str = "1Gi") -> Object:
        """A claim that is not bound yet."""
        dice = self._dice
        made: Object = {
            "metadata": dice.meta(dice.name("data"), namespace),
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}},
                "volumeMode": "Filesystem",
                "storageClassName": storage_class,
            },
            "status": {"phase": "Pending"},
        }
        self._cluster["persistentvolumeclaims"].append(made)
        return made

    def volume(self, storage_class: str, source: Object, *, size: str = "1Gi") -> Object:
        dice = self._dice
        spec: Object = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "volumeMode": "Filesystem",
            **source,
        }
        if storage_class:
            spec["storageClassName"] = storage_class
        made = {
            "metadata": dice.meta(dice.name("pv")),
            "spec": spec,
            "status": {"phase": "Available"},
        }
        self._cluster["persistentvolumes"].append(made)
        return made

    def bind(self, claim: Object, volume: Object) -> None:
        meta = claim["metadata"]
        meta.setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim["status"] = {
            "phase": "Bound",
            "accessModes": claim["spec"]["accessModes"],
            "capacity": dict(volume["spec"]["capacity"]),
        }
        volume["spec"]["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        }
        volume["status"]["phase"] = "Bound"

    def bound_claim(self, namespace: str, source: Object | None = None) -> Object:
        dice = self._dice
        claim = self.claim(namespace, "fast")
        driver = dice.pick(("csi.example.com", "csi.example.com", "ebs.csi.aws.com"))
        csi = {"csi": {"driver": driver, "volumeHandle": f"h-{dice.word()}"}}
        volume = self.volume("fast", source or csi)
        self.bind(claim, volume)
        return claim

    def _volume_of(self, claim: Object) -> Object:
        wanted = claim["spec"]["volumeName"]
        volumes: list[Object] = self._cluster["persistentvolumes"]
        return next(volume for volume in volumes if volume["metadata"]["name"] == wanted)

    def _pin(self, volume: Object) -> None:
        """Restrict where the volume can be reached from."""
        dice = self._dice
        key = dice.pick((ZONE, ZONE, HOST, "rack"))
        values = {ZONE: _ZONES, HOST: tuple(self._nodes), "rack": ("r1", "r2", "r3")}[key]
        terms = [
            {
                "matchExpressions": [
                    {"key": key, "operator": "In", "values": dice.some(values, 1, 3)}
                ]
            }
            for _ in range(dice.pick((1, 1, 1, 2)))
        ]
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}

    # The states that a claim of the attempted pod can be in.

    def _bound(self, namespace: str) -> Object:
        dice = self._dice
        source = dice.pick(
            (
                None,
                None,
                {"awsElasticBlockStore": {"volumeID": f"vol-{dice.word()}"}},
                {"gcePersistentDisk": {"pdName": f"pd-{dice.word()}", "fsType": "ext4"}},
                {"nfs": {"server": "s", "path": "/"}},
            )
        )
        claim = self.bound_claim(namespace, source)
        volume = self._volume_of(claim)
        if dice.chance(0.5):
            self._pin(volume)
        if dice.chance(0.35):
            zones = "__".join(dice.some(_ZONES, 1, 2))
            volume["metadata"]["labels"] = {dice.pick((ZONE, ZONE, _OLD_ZONE)): zones}
            if dice.chance(0.25):
                volume["metadata"]["labels"][REGION] = dice.pick(("r1", "r2"))
        return claim

    def _local(self, namespace: str) -> Object:
        """Not bound; a few local volumes may fit."""
        dice = self._dice
        claim = self.claim(namespace, "local", size=dice.pick(("1Gi", "4Gi", "5Gi", "1500Mi")))
        if dice.chance(0.25):
            claim["spec"]["selector"] = {"matchLabels": {"media": "ssd"}}
        if dice.chance(0.1):
            claim["spec"]["volumeMode"] = "Block"
        if dice.chance(0.1):
            claim["spec"]["accessModes"] = ["ReadOnlyMany"]
        for node in dice.some(self._nodes, 0, 6):
            volume = self.volume(
                "local",
                {"local": {"path": "/mnt/d"}},
                size=dice.pick(("1Gi", "2Gi", "5Gi", "10Gi")),
            )
            volume["metadata"]["labels"] = {"media": dice.pick(("ssd", "hdd"))}
            spec = volume["spec"]
            spec["nodeAffinity"] = {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
                    ]
                }
            }
            if dice.chance(0.15):
                spec["accessModes"] = ["ReadWriteOnce", "ReadOnlyMany"]
            if dice.chance(0.1):
                spec["volumeMode"] = "Block"
            if dice.chance(0.2):
                volume["status"]["phase"] = dice.pick(("Released", "Failed", "Pending"))
            if dice.chance(0.1):
                # Reserved by name for this claim, or for one of another name.
                spec["claimRef"] = {
                    "kind": "PersistentVolumeClaim",
                    "namespace": namespace,
                    "name": dice.pick((claim["metadata"]["name"], "someone-else")),
                }
        return claim

    def _to_provision(self, namespace: str) -> Object:
        dice = self._dice
        size = dice.pick(("1Gi", "4Gi", "6Gi", "10Gi", "20Gi", "50G"))
        claim = self.claim(
            namespace, dice.pick(("topo", "topo", "cap", "cap", "fast", "ebs")), size=size
        )
        if dice.chance(0.1):
            annotations = {"volume.kubernetes.io/selected-node": dice.pick(self._nodes)}
            claim["metadata"]["annotations"] = annotations
        return claim

    def _troubled(self, namespace: str) -> Object:
        """Claims that stop the pod, each in its own way."""
        dice = self._dice
        trouble = dice.between(0, 5)
        if trouble == 0:
            return self.claim(namespace, "now")
        if trouble == 1:
            return self.claim(namespace, "no-such-class")
        if trouble == 2:
            claim = self.claim(namespace, "fast")
            claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            claim["spec"]["volumeName"] = "gone-pv"
            claim["status"] = {"phase": "Lost"}
            return claim
        if trouble == 3:
            claim = self.bound_claim(namespace)
            claim["metadata"]["deletionTimestamp"] = "2026-01-25T00:00:00Z"
            claim["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
            return claim
        if trouble == 4:
            claim = self.claim(namespace, "fast")
            self._cluster["persistentvolumeclaims"].remove(claim)
            return claim
        return self.claim(namespace, "")

    def _single_pod(self, namespace: str) -> Object:
        """ReadWriteOncePod, and perhaps another pod has it already."""
        dice = self._dice
        claim = self.bound_claim(namespace)
        claim["spec"]["accessModes"] = ["ReadWriteOncePod"]
        claim["status"]["accessModes"] = ["ReadWriteOncePod"]
        self._volume_of(claim)["spec"]["accessModes"] = ["ReadWriteOncePod"]
        if dice.chance(0.7):
            user = pod(
                dice,
                namespace=namespace,
                priority=dice.pick((0, 1000)),
                on=dice.pick((*self._nodes, "vanished-node")),
            )
            user["spec"]["volumes"] = [self.mount(claim, "v0")]
            self._cluster["pods"].append(user)
        return claim

    @staticmethod
    def mount(claim: Object, name: str) -> Object:
        return {"name": name, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}

    def any_claim(self, namespace: str) -> Object:
        kinds = (
            *(self._bound, self._bound, self._bound, self._local, self._local),
            *(self._to_provision, self._to_provision, self._single_pod, self._troubled),
        )
        return self._dice.pick(kinds)(namespace)

    def add_ephemeral(self, item: Object, number: int) -> None:
        """A volume whose claim is made for the pod: present, someone else's, or not yet there."""
        dice = self._dice
        meta = item["metadata"]
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
        }
        name = f"eph{number}"
        volume = {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
        item["spec"].setdefault("volumes", []).append(volume)
        if dice.chance(0.75):
            namespace = meta["namespace"]
            bound = dice.chance(0.5)
            claim = self.bound_claim(namespace) if bound else self.claim(namespace, "fast")
            claim["metadata"]["name"] = f"{meta['name']}-{name}"
            if bound:
                self.bind(claim, self._volume_of(claim))
            if dice.chance(0.85):
                owned_by(claim, "Pod", meta["name"], meta["uid"])

    def disk(self) -> Object:
        """A disk named in the pod itself; two pods may collide on it."""
        dice = self._dice
        read_only: Object = {"readOnly": True} if dice.chance(0.5) else {}
        return dice.pick(
            (
                {"gcePersistentDisk": {"pdName": dice.pick(("pd-a", "pd-b")), **read_only}},
                {"awsElasticBlockStore": {"volumeID": dice.pick(("vol-a", "vol-b"))}},
                {
                    "rbd": {
                        "monitors": dice.some(("m1:6789", "m2:6789", "m3:6789"), 1, 2),
                        "image": dice.pick(("img", "img2")),
                        "pool": dice.pick(("rbd", "p2")),
                        **read_only,
                    }
                },
                {
                    "iscsi": {
                        "targetPortal": f"10.0.0.{dice.between(1, 3)}:3260",
                        "iqn": dice.pick(("iqn.2026-01.org:a", "iqn.2026-01.org:b")),
                        "lun": dice.between(0, 2),
                        **read_only,
                    }
                },
            )
        )

    def crowd(self, namespaces: list[str], most: int) -> None:
        """Pods that already use up drivers' limits and hold disks."""
        dice = self._dice
        shared: list[tuple[str, Object]] = []
        for _ in range(dice.between(0, most)):
            namespace = dice.pick(namespaces)
            user = pod(
                dice,
                namespace=namespace,
                priority=dice.pick((0, 0, 1000)),
                on=dice.pick(self._nodes),
            )
            if dice.chance(0.15):
                user["spec"]["volumes"] = [{"name": "v0", **self.disk()}]
            elif shared and dice.chance(0.1):
                where, claim = dice.pick(shared)
                user["metadata"]["namespace"] = where
                user["spec"]["volumes"] = [self.mount(claim, "v0")]
            else:
                claim = self.bound_claim(namespace)
                shared.append((namespace, claim))
                user["spec"]["volumes"] = [self.mount(claim, "v0")]
            self._cluster["pods"].append(user)

    def add_volumes(self, item: Object, fewest: int, most: int) -> None:
        """What the attempted pod mounts."""
        dice = self._dice
        volumes = item["spec"].setdefault("volumes", [])
        namespace = item["metadata"]["namespace"]
        for number in range(dice.between(fewest, most)):
            if dice.chance(0.2):
                volumes.append({"name": f"d{number}", **self.disk()})
            elif dice.chance(0.06):
                self.add_ephemeral(item, number)
            else:
                volumes.append(self.mount(self.any_claim(namespace), f"v{number}"))
        if dice.chance(0.15):
            volumes.append({"name": "tmp", "emptyDir": {}})
        if dice.chance(0.08):
            volumes.append({"name": "cm", "configMap": {"name": "x"}})

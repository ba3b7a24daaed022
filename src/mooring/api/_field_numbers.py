"""The numbers in protobuf of the fields of pods, as far as our structs have them.

In the form of Kubernetes' generated.proto files: `2.3` is field 3 of the message in field 2, which
is no field of its own in JSON. A message has the name of our class, but for those in `RENAMED`.
"""

from collections.abc import Mapping
from typing import Final

RENAMED: Final[Mapping[tuple[str, str], str]] = {
    ("PodStatus", "conditions"): "PodCondition",
}
"""Message and field -> the message of the field, where one class of ours stands for several."""

FIELD_NUMBERS: Final[Mapping[str, str]] = {
    "AWSElasticBlockStoreVolumeSource": "volumeID=1 fsType=2 partition=3 readOnly=4",
    "Affinity": "nodeAffinity=1 podAffinity=2 podAntiAffinity=3",
    "AzureDiskVolumeSource": "diskName=1 diskURI=2 readOnly=5 kind=6",
    "CSIVolumeSource": "driver=1 readOnly=2 fsType=3",
    "CinderVolumeSource": "volumeID=1 fsType=2 readOnly=3",
    "ContainerExtendedResourceRequest": "containerName=1 resourceName=2 requestName=3",
    "Container": "name=1 image=2 command=3 args=4 ports=6 resources=8 resizePolicy=23"
    " restartPolicy=24 restartPolicyRules=25",
    "ContainerPort": "name=1 hostPort=2 containerPort=3 protocol=4 hostIP=5",
    "ContainerResizePolicy": "resourceName=1 restartPolicy=2",
    "ContainerRestartRule": "action=1",
    "ContainerStatus": "name=1 ready=4 restartCount=5 allocatedResources=10 resources=11",
    "EphemeralVolumeSource": "volumeClaimTemplate=1",
    "GCEPersistentDiskVolumeSource": "pdName=1 fsType=2 partition=3 readOnly=4",
    "ISCSIVolumeSource": "targetPortal=1 iqn=2 lun=3 fsType=5 readOnly=6",
    "ImageVolumeSource": "reference=1 pullPolicy=2",
    "LabelSelector": "matchLabels=1 matchExpressions=2",
    "LabelSelectorRequirement": "key=1 operator=2 values=3",
    "NodeAffinity": "requiredDuringSchedulingIgnoredDuringExecution=1"
    " preferredDuringSchedulingIgnoredDuringExecution=2",
    "NodeSelector": "nodeSelectorTerms=1",
    "NodeSelectorRequirement": "key=1 operator=2 values=3",
    "NodeSelectorTerm": "matchExpressions=1 matchFields=2",
    "ObjectMeta": "name=1 generateName=2 namespace=3 uid=5 resourceVersion=6 generation=7"
    " creationTimestamp=8 deletionTimestamp=9 deletionGracePeriodSeconds=10 labels=11"
    " annotations=12 ownerReferences=13 finalizers=14",
    "OwnerReference": "kind=1 name=3 uid=4 apiVersion=5 controller=6 blockOwnerDeletion=7",
    "PersistentVolumeClaimSpec": "accessModes=1 resources=2 volumeName=3 selector=4"
    " storageClassName=5 volumeMode=6 volumeAttributesClassName=9",
    "PersistentVolumeClaimTemplate": "metadata=1 spec=2",
    "PersistentVolumeClaimVolumeSource": "claimName=1 readOnly=2",
    "Pod": "metadata=1 spec=2 status=3",
    "PodAffinity": "requiredDuringSchedulingIgnoredDuringExecution=1"
    " preferredDuringSchedulingIgnoredDuringExecution=2",
    "PodAffinityTerm": "labelSelector=1 namespaces=2 topologyKey=3 namespaceSelector=4"
    " matchLabelKeys=5 mismatchLabelKeys=6",
    "PodAntiAffinity": "requiredDuringSchedulingIgnoredDuringExecution=1"
    " preferredDuringSchedulingIgnoredDuringExecution=2",
    "PodCondition": "type=1 status=2 lastProbeTime=3 lastTransitionTime=4 reason=5 message=6"
    " observedGeneration=7",
    "PodExtendedResourceClaimStatus": "requestMappings=1 resourceClaimName=2",
    "PodOS": "name=1",
    "PodResourceClaim": "name=1 resourceClaimName=3 resourceClaimTemplateName=4",
    "PodResourceClaimStatus": "name=1 resourceClaimName=2",
    "PodSchedulingGate": "name=1",
    "PodSpec": "volumes=1 containers=2 restartPolicy=3 terminationGracePeriodSeconds=4"
    " nodeSelector=7 serviceAccountName=8 nodeName=10 hostNetwork=11 hostPID=12 hostIPC=13"
    " affinity=18 schedulerName=19 initContainers=20 tolerations=22 priorityClassName=24"
    " priority=25 runtimeClassName=29 preemptionPolicy=31 overhead=32"
    " topologySpreadConstraints=33 os=36 hostUsers=37 schedulingGates=38 resourceClaims=39"
    " resources=40",
    "PodStatus": "phase=1 conditions=2 message=3 reason=4 hostIP=5 podIP=6 startTime=7"
    " containerStatuses=8 initContainerStatuses=10 nominatedNodeName=11 resize=14"
    " resourceClaimStatuses=15 observedGeneration=17 extendedResourceClaimStatus=18"
    " allocatedResources=19 resources=20",
    "PortworxVolumeSource": "volumeID=1 fsType=2 readOnly=3",
    "PreferredSchedulingTerm": "weight=1 preference=2",
    "RBDVolumeSource": "monitors=1 image=2 fsType=3 pool=4 readOnly=8",
    "ResourceClaimRef": "name=1 request=2",
    "ResourceRequirements": "limits=1 requests=2 claims=3",
    "Toleration": "key=1 operator=2 value=3 effect=4 tolerationSeconds=5",
    "TopologySpreadConstraint": "maxSkew=1 topologyKey=2 whenUnsatisfiable=3 labelSelector=4"
    " minDomains=5 nodeAffinityPolicy=6 nodeTaintsPolicy=7 matchLabelKeys=8",
    "Volume": "name=1 gcePersistentDisk=2.3 awsElasticBlockStore=2.4 iscsi=2.8"
    " persistentVolumeClaim=2.10 rbd=2.11 cinder=2.13 azureDisk=2.22 portworxVolume=2.24 csi=2.28"
    " ephemeral=2.29 image=2.30",
    "VolumeResourceRequirements": "limits=1 requests=2",
    "WeightedPodAffinityTerm": "weight=1 podAffinityTerm=2",
}

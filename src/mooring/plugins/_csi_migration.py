"""CSI migration: volumes of in-tree plugins, translated to those of their CSI drivers.

Volume limits count them under the driver's name, and their zones are required by the driver's
label.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from mooring.api.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.storage import CSINode
from mooring.api.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    GCEPersistentDiskVolumeSource,
    InTreeVolumeSources,
    PersistentVolume,
)
from mooring.api.wellknown import REGION, ZONE

BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
MULTI_ZONE_DELIMITER: Final = "__"  # between the zones in one label value
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"

_UNKNOWN: Final = "UNSPECIFIED"
_EBS_ID: Final = re.compile(r"vol-[^/]*")


class Migration(msgspec.Struct, frozen=True):
    """An in-tree plugin and the driver that replaces it."""

    plugin: str
    driver: str
    zone_label: str = ""  # the driver's label for the zone of a node, if it has one


EBS: Final = Migration("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
GCE: Final = Migration("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
AZURE: Final = Migration("kubernetes.io/azure-disk", "disk.csi.azure.com")
CINDER: Final = Migration(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
)
PORTWORX: Final = Migration("kubernetes.io/portworx-volume", "pxd.portworx.com")
BY_PLUGIN: Final = {it.plugin: it for it in (EBS, GCE, AZURE, CINDER, PORTWORX)}


class Untranslatable(ValueError):
    """A volume that can't be translated for the driver."""


def migration_of(source: InTreeVolumeSources) -> Migration | None:
    if source.aws_elastic_block_store is not None:
        return EBS
    if source.gce_persistent_disk is not None:
        return GCE
    if source.azure_disk is not None:
        return AZURE
    if source.cinder is not None:
        return CINDER
    return PORTWORX if source.portworx_volume is not None else None


def migrated_plugins(csi_node: CSINode | None) -> frozenset[str]:
    listed = csi_node.metadata.annotations.get(MIGRATED_PLUGINS) if csi_node is not None else None
    return frozenset(listed.split(",")) if listed else frozenset()


def handle(volume: PersistentVolume) -> str:
    labels = volume.metadata.labels
    return source_handle(volume.spec, labels.get(BETA_ZONE) or labels.get(ZONE, ""))


def source_handle(source: InTreeVolumeSources, zones: str = "") -> str:
    if (ebs := source.aws_elastic_block_store) is not None:
        return _ebs_handle(ebs)
    if (disk := source.gce_persistent_disk) is not None:
        return _gce_handle(disk, zones)
    if (azure := source.azure_disk) is not None:
        return _azure_handle(azure)
    other = source.cinder or source.portworx_volume
    return other.volume_id if other is not None else ""


def _ebs_handle(disk: AWSElasticBlockStoreVolumeSource) -> str:
    if not disk.volume_id.startswith("aws://"):
        return disk.volume_id
    found = urlsplit(disk.volume_id).path.strip("/")
    if _EBS_ID.fullmatch(found) is None:
        raise Untranslatable(
            "failed to translate Kubernetes ID to EBS Volume ID"
            f" Invalid format for AWS volume ({disk.volume_id})"
        )
    return found


def _gce_handle(disk: GCEPersistentDiskVolumeSource, zones: str) -> str:
    place = f"zones/{zones or _UNKNOWN}"
    if MULTI_ZONE_DELIMITER in zones:
        place = f"regions/{_gce_region(zones.split(MULTI_ZONE_DELIMITER))}"
    return f"projects/{_UNKNOWN}/{place}/disks/{disk.pd_name}"


def _gce_region(zones: list[str]) -> str:
    problem = "failed to get region from zones: "
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            form = "{locale}-{region}-{zone}"
            raise Untranslatable(
                f"{problem}zone in unexpected format, expected: {form}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        shown = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise Untranslatable(
            f"{problem}multiple or no regions gotten from zones, got: map[{shown}]"
        )
    return regions.pop()


def _azure_handle(disk: AzureDiskVolumeSource) -> str:
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise Untranslatable(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def required_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """The nodes from which a volume is reachable; None: all."""
    affinity = volume.spec.node_affinity
    return affinity.required if affinity is not None else None


def translated_nodes(volume: PersistentVolume, migration: Migration) -> NodeSelector | None:
    """As `required_nodes`, with the labels of the driver; Untranslatable if there is no handle.

    Zones in the affinity are required of the driver's label instead; without such zones, the zone
    labels of the volume count. Beta region labels become the current ones.
    """
    handle(volume)
    required = required_nodes(volume)
    if not migration.zone_label:
        return required
    zone, region = _labels_in_use(volume, required)
    renamed = {zone: migration.zone_label} if _values(required, zone) else {}
    if region == BETA_REGION and _values(required, region):
        renamed[region] = REGION
    required = _renamed(required, renamed) if required is not None else None
    listed = volume.metadata.labels.get(zone, "") if zone not in renamed else ""
    zones = {part.strip() for part in listed.split(MULTI_ZONE_DELIMITER)} - {""}
    if not zones:
        return required
    also = NodeSelectorRequirement(
        key=migration.zone_label, operator="In", values=tuple(sorted(zones))
    )
    terms = required.node_selector_terms if required is not None else ()
    return NodeSelector(
        node_selector_terms=tuple(
            structs.replace(term, match_expressions=(*term.match_expressions, also))
            for term in terms or (NodeSelectorTerm(),)
        )
    )


def _labels_in_use(volume: PersistentVolume, required: NodeSelector | None) -> tuple[str, str]:
    """The labels for zone and region that this volume uses: current or beta ones."""
    in_affinity = {test.key for test in _tests(required)}
    for known in (in_affinity, volume.metadata.labels):
        if ZONE in known:
            break
        if BETA_ZONE in known:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _tests(required: NodeSelector | None) -> Iterator[NodeSelectorRequirement]:
    for term in required.node_selector_terms if required is not None else ():
        yield from term.match_expressions


def _values(required: NodeSelector | None, key: str) -> bool:
    return any(test.key == key and test.values for test in _tests(required))


def _renamed(required: NodeSelector, names: dict[str, str]) -> NodeSelector:
    return NodeSelector(
        node_selector_terms=tuple(
            structs.replace(
                term,
                match_expressions=tuple(
                    structs.replace(test, key=names.get(test.key, test.key))
                    for test in term.match_expressions
                ),
            )
            for term in required.node_selector_terms
        )
    )

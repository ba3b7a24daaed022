"""Strings and what stands for them in a redacted snapshot.

A pseudonym is an HMAC of the string under a key, so that equal strings stay equal and nothing else
is kept. Strings that a rule reads letter by letter keep the part that it reads: integers (Gt, Lt),
the parts of a path, zones in one label value, the tag of an image. `redaction` says which strings
of an object are replaced; `Pseudonyms` says by what.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable
from typing import Final

from mooring.api._names import is_label_value, is_qualified_name
from mooring.api.requests import normalized_image
from mooring.config.defaults import DEFAULT_MULTIPOINT

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_TOKEN: Final = re.compile(r"(?P<resource>Insufficient \S+?(?=[,.]?(\s|$)))|[A-Za-z0-9][\w.'/:@-]*")
_GENERATED: Final = re.compile(r"container-\d+-request-\d+", re.ASCII)  # by the scheduler itself
_LENGTH: Final = 12  # characters, of 5 bits each
_ZONES: Final = "__"  # between the zones in one label value

# Words of Kubernetes that say nothing about a cluster, and that rules know by name.
_PLAIN: Final = """
linux windows amd64 arm64 arm ppc64le s390x riscv64 true false
default-scheduler metadata.name
system-cluster-critical system-node-critical 0.0.0.0 :: UNSPECIFIED aws:
kubernetes.io/no-provisioner kubernetes.io/aws-ebs ebs.csi.aws.com kubernetes.io/gce-pd
pd.csi.storage.gke.io kubernetes.io/azure-disk disk.csi.azure.com kubernetes.io/cinder
cinder.csi.openstack.org kubernetes.io/portworx-volume pxd.portworx.com
"""
_KEPT: Final = frozenset(_PLAIN.split()) | {"FromClass", "FromClaim"}  # sources of configuration
_KEPT_KEYS: Final = frozenset(
    {
        "topology.ebs.csi.aws.com/zone",
        "topology.gke.io/zone",
        "topology.cinder.csi.openstack.org/zone",
    }
)
_KUBERNETES: Final = ("kubernetes.io", "k8s.io")  # domains whose label keys are well known


# What the default plugins say; other words of a message are taken for names.
_SAID: Final = """
a access affinity all allocate allocated allocation already an another anti-affinity are available
being bind bound by cannot claim claims class completed conflict constraints controller could
count cpu create created cycleState deallocate deallocation deleted deletion device did didn't
disk does due dynamic eligible encountered enough ephemeral ephemeral-storage error exceed exist
existing expected extended failed features filter find fit for format found free from gates get
got had has have helpful immediate in in-use incoming Insufficient invalid is it label locale many
match max memory missing mode name Never new No no node nodes nominated non-existent not of on or
owned owner persistent persistentvolume PersistentVolume's PersistentVolumeClaim
persistentvolumeclaim PersistentVolumeClaims plugin plugins pod Pod Pod's pods pools ports
Preemption preemption preemptionPolicy process pv PVC read reading ReadWriteOncePod region request
requested required resource resourceclaim ResourceClaim resourceclaims resources rules running s
satisfy schedulable schedule scheduler-enforced scheduling selector spread still storage
storageclass taint terminating terms the to Too topology translate unavailable unbound unexpected
unresolvable unschedulable untolerated victims volume volumes waiting was were with zone zones
"""
_WORDS: Final = frozenset(_SAID.split()) | {one.name for one in DEFAULT_MULTIPOINT}


class Pseudonyms:
    """The map of one file. With `ranked` names, pseudonyms sort as the names do.

    Of pods that are equally important, preemption takes the last by `namespace/name`: that order is
    in the listing of the objects anyway, so that nothing more is told. `spaces` are the namespaces.
    `zones` keep their three parts, of which two are a region.
    """

    def __init__(
        self,
        key: bytes,
        *,
        ranked: Iterable[str] = (),
        spaces: Iterable[str] = (),
        zones: Iterable[str] = (),
    ) -> None:
        self._key = key
        self._known: dict[str, str] = {}
        followed = frozenset(spaces)
        names = sorted(set(ranked), key=lambda name: f"{name}/" if name in followed else name)
        width = len(str(len(names)))
        self._ranks = {name: f"n{rank:0{width}}-" for rank, name in enumerate(names)}
        self._zones = frozenset(zone for zone in zones if zone.count("-") == 2)

    def join(self, whole: str, *parts: str) -> None:
        """A name that rules put together of others by `-` stays together."""
        self._known[whole] = "-".join(map(self.name, parts))

    def name(self, text: str) -> str:
        """The pseudonym of a name, or of anything that is compared as a whole."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._new(text)
        return found

    def keep(self, text: str) -> None:
        """A name that stays, because a rule finds it as a part of one that stays."""
        self._known[text] = text

    def word(self, text: str) -> str:
        """The pseudonym of an identifier: letters and digits alone, in no order."""
        return self._code(text) if text else ""

    def key(self, text: str) -> str:
        """The pseudonym of a label key; those of Kubernetes itself stay."""
        domain, slash, _ = text.partition("/")
        if text in _KEPT_KEYS or (slash and domain.endswith(_KUBERNETES)):
            return text
        return self.name(text) if not text or is_qualified_name(text) else self.name(text) + "!"

    def value(self, text: str) -> str:
        """The pseudonym of a label's value."""
        return self.name(text) if is_label_value(text) else self.name(text) + "!"

    def image(self, text: str) -> str:
        """The pseudonym of an image: the same with and without the default tag."""
        return f"{self._code(normalized_image(text))}:i" if text else ""

    def text(self, message: str) -> str:
        """A message of the scheduler in which only its own words, and resources, are left."""
        return _TOKEN.sub(self._token, message)

    def _token(self, found: re.Match[str]) -> str:
        if found["resource"]:
            return found[0]
        word = found[0].rstrip(".:")
        parts = word.split("/")
        if all(part in _WORDS or _INTEGER.fullmatch(part) for part in parts):
            return found[0]
        return self.name(word) + found[0][len(word) :]

    def _new(self, text: str) -> str:
        if not text or text in _KEPT or _INTEGER.fullmatch(text) or _GENERATED.fullmatch(text):
            return text
        if "/" in text:
            return "/".join(map(self.name, text.split("/")))
        if _ZONES in text:
            return _ZONES.join(map(self.name, text.split(_ZONES)))
        if text in self._zones:
            return "-".join(self._code(part) for part in text.split("-"))
        if text.startswith("vol-"):
            return f"vol-{self._code(text)}"
        return self._ranks.get(text, "") + self._code(text)

    def _code(self, text: str) -> str:
        digest = hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")
        return "x" + base64.b32encode(digest[:8])[:_LENGTH].decode().lower()

"""Get the Policy that a v1alpha1 file refers to: from a file, or from a ConfigMap."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mooring.config._field_errors import quote
from mooring.config.legacy import POLICY_VERSIONS
from mooring.config.legacy.types import PolicyConfigMap, PolicySource
from mooring.config.manifests import POLICY_KEY, POLICY_KIND, ConfigMaps
from mooring.config.notes import Findings
from mooring.config.source import parse_yaml
from mooring.errors import ConfigError

ReadConfigMap = Callable[[str, str, str], Mapping[str, str] | None]
"""The data of a ConfigMap by namespace, name and the kubeconfig that the configuration gives.

None when there is no such ConfigMap.
"""

_SYSTEM_NAMESPACE = "kube-system"


class PolicyFetcher(msgspec.Struct, frozen=True):
    """Reads the Policy from the given place, or else from beside the configuration."""

    folder: Path | None  # of the configuration, where it is a file
    siblings: Mapping[str, str]
    config_maps: ConfigMaps
    read_config_map: ReadConfigMap | None
    kubeconfig: str

    def fetch(
        self, source: PolicySource, findings: Findings
    ) -> tuple[dict[Any, object], str] | None:
        """The Policy as plain data, and its place; None after a problem was added to findings."""
        if source.file is not None:
            found = self._from_file(source.file.path, findings)
        elif source.config_map is not None:
            found = self._from_config_map(source.config_map, findings)
        else:
            text = "Required value: file.path, or configMap.name and configMap.namespace"
            findings.refuse("algorithmSource.policy", text)
            return None
        if found is None:
            return None
        text, place = found
        return _parse(text, place, findings)

    def _from_file(self, path: str, findings: Findings) -> tuple[str, str] | None:
        field = "algorithmSource.policy.file.path"
        name = Path(path).name
        if not path or not name:
            findings.refuse(field, "Required value")
            return None
        places = [Path(path)]
        if self.folder is not None:
            places.append(self.folder / name)
        for place in places:
            try:
                text = place.read_text(encoding="utf-8-sig")
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError, ValueError) as error:
                findings.refuse(field, f"couldn't read policy config: {error}")
                return None
            if place != places[0]:
                findings.note(field, f"{path} is not there; read {place} beside this file instead")
            return text, str(place)
        if name in self.siblings:
            findings.note(field, f"{path} is taken to be the key {name} of the same ConfigMap")
            return self.siblings[name], name
        beside = "" if len(places) == 1 else f", nor is there {places[1]}"
        findings.refuse(field, f"missing policy config file {path}{beside}")
        return None

    def _from_config_map(
        self, wanted: PolicyConfigMap, findings: Findings
    ) -> tuple[str, str] | None:
        field = "algorithmSource.policy.configMap"
        namespace, name = wanted.namespace or _SYSTEM_NAMESPACE, wanted.name
        data = self.config_maps.get((namespace, name))
        if data is None and self.read_config_map is not None:
            given = self.read_config_map(namespace, name, self.kubeconfig)
            if given is None:
                text = f"couldn't get policy config map {namespace}/{name}: not found"
                findings.refuse(field, text)
                return None
            data = dict(given)
        if data is None:
            text = (
                f"the Policy is in the ConfigMap {namespace}/{name} of a cluster; save it with"
                f" kubectl -n {namespace} get configmap {name} -o jsonpath='{{.data.policy\\.cfg}}'"
                " and refer to the file with algorithmSource.policy.file.path"
            )
            findings.refuse(field, text)
            return None
        if POLICY_KEY not in data:
            text = f'missing policy config map value at key "{POLICY_KEY}"'
            findings.refuse(field, f"{text} of {namespace}/{name}")
            return None
        return data[POLICY_KEY], f"ConfigMap {namespace}/{name}"


def _parse(text: str, place: str, findings: Findings) -> tuple[dict[Any, object], str] | None:
    try:
        raw, problems = parse_yaml(text, place)
    except ConfigError as error:
        findings.refuse_all(error.problems)
        return None
    within = Findings(place)
    within.refuse_all(problems)
    if not isinstance(raw, dict):
        within.refuse("", f"expected a {POLICY_KIND}, got {quote(raw)}")
    elif raw.get("kind") not in (None, "", POLICY_KIND):
        within.refuse("kind", f"expected {POLICY_KIND}, got {quote(raw['kind'])}")
    elif raw.get("apiVersion") not in (None, "", *POLICY_VERSIONS):
        within.refuse("apiVersion", f"expected v1, got {quote(raw['apiVersion'])}")
    findings.add(within)
    return (raw, place) if isinstance(raw, dict) and not within.problems else None

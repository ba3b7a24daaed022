"""Find the configuration in a ConfigMap, or in a file of several documents.

Schedulers are mostly deployed from one file that holds a ConfigMap. Every reader of configurations
accepts such a file.
"""

from collections.abc import Iterator
from typing import NamedTuple

from mooring.config.legacy import POLICY_VERSIONS
from mooring.config.source import (
    YamlDocument,
    child_path,
    parse_document,
    parse_documents,
    parse_yaml,
)
from mooring.config.types import KIND
from mooring.errors import ConfigError, Problem

POLICY_KIND = "Policy"
POLICY_KEY = "policy.cfg"
ConfigMaps = dict[tuple[str, str], dict[str, str]]


class LocatedConfiguration(NamedTuple):
    """A configuration, its name in messages, and the ConfigMaps around it."""

    text: str
    source: str
    first_line: int  # of the text in its file; 0 if it is not there line by line
    siblings: dict[str, str]  # the other keys of its ConfigMap
    config_maps: ConfigMaps  # by namespace and name
    document: YamlDocument | None = None  # if it was parsed already

    def parse(self) -> YamlDocument:
        """Its document; raises ConfigError."""
        return self.document or parse_document(self.text, self.source, max(self.first_line, 1))


class _Candidate(NamedTuple):
    kind: str
    place: str
    configuration: LocatedConfiguration


def find_configuration(text: str, source: str) -> LocatedConfiguration:
    """The one configuration of a text; a Policy counts if no configuration refers to it."""
    documents = parse_documents(text, source)
    if len(documents) == 1 and _kind(documents[0].data) not in ("ConfigMap", "List"):
        return LocatedConfiguration(text, source, 1, {}, {}, documents[0])
    candidates: list[_Candidate] = []
    config_maps: ConfigMaps = {}
    for document in documents:
        candidates += _candidates(document, source, config_maps)
    chosen = [found for found in candidates if found.kind == KIND] or candidates
    if len(chosen) != 1:
        kinds = ", ".join(dict.fromkeys(_kind(document.data) for document in documents))
        message = f"expected a {KIND} or a Policy, also inside a ConfigMap; found only {kinds}"
        if chosen:
            places = "; ".join(found.place for found in chosen)
            message = f"expected one configuration, found {len(chosen)}: {places}"
        raise ConfigError([Problem(source, message)], source)
    return chosen[0].configuration


def leading_comments(text: str) -> str:
    """The comment that a file opens with."""
    lines = []
    for line in text.removeprefix("\ufeff").splitlines():
        if not line.startswith("#"):
            break
        lines.append(f"{line}\n")
    return "".join(lines)


def _candidates(
    document: YamlDocument, source: str, config_maps: ConfigMaps
) -> Iterator[_Candidate]:
    if kind := _configuration_kind(document.data):
        # The text of a document has its lines where the file has them.
        found = LocatedConfiguration(document.text, source, 1, {}, config_maps, document)
        yield _Candidate(kind, f"line {document.line}", found)
    items = {"": document.data}
    if _kind(document.data) == "List" and isinstance(document.data, dict):
        listed = document.data.get("items")
        listed = listed if isinstance(listed, list) else []
        items = {f"items[{index}].": item for index, item in enumerate(listed)}
    for path, item in items.items():
        if isinstance(item, dict) and _kind(item) == "ConfigMap":
            yield from _inside(item, path, document, source, config_maps)


def _inside(
    config_map: dict[object, object],
    path: str,
    document: YamlDocument,
    source: str,
    config_maps: ConfigMaps,
) -> Iterator[_Candidate]:
    metadata, data = config_map.get("metadata"), config_map.get("data")
    if not isinstance(data, dict):
        return
    texts = {str(key): value for key, value in data.items() if isinstance(value, str)}
    about = metadata if isinstance(metadata, dict) else {}
    name, namespace = str(about.get("name") or ""), str(about.get("namespace") or "")
    config_maps[namespace, name] = texts
    for key, text in texts.items():
        kind = POLICY_KIND if key == POLICY_KEY else _kind_of_text(text)
        if kind:
            siblings = {other: value for other, value in texts.items() if other != key}
            place = f"ConfigMap {name}, {key}"
            line = document.blocks.get(child_path(f"{path}data", key), 0)
            named = source if line else f"{source}: {place}"
            found = LocatedConfiguration(text, named, line, siblings, config_maps)
            yield _Candidate(kind, place, found)


def _kind_of_text(text: str) -> str:
    try:
        return _configuration_kind(parse_yaml(text)[0])
    except ConfigError:
        # A configuration with a syntax error still counts; loading it reports the error.
        return KIND if KIND in text else ""


def _configuration_kind(data: object) -> str:
    """The kind of a configuration; empty for other objects, and for policies of other groups."""
    kind = _kind(data)
    if kind == POLICY_KIND and isinstance(data, dict):
        return kind if data.get("apiVersion") in POLICY_VERSIONS else ""
    return kind if kind == KIND else ""


def _kind(data: object) -> str:
    kind = data.get("kind") if isinstance(data, dict) else None
    return kind if isinstance(kind, str) else "something without a kind"

"""Write a configuration of any version as a v1 file.

Unlike `show`, which writes every default, this writes only the given fields. The order is that of
the reference, and the notes come first, as comments. Converting the result again gives the same
text.
"""

import textwrap
from typing import Any, get_args, get_origin

import msgspec

from mooring.config.duration import Duration
from mooring.config.load import HEADER, Loaded
from mooring.config.manifests import leading_comments
from mooring.config.source import dump_yaml
from mooring.config.types import API_VERSION, KubeSchedulerConfiguration, Section

_WIDTH = 100


def to_v1_yaml(loaded: Loaded) -> str:
    """The configuration in version v1, under the comment it opened with and the notes."""
    body = {key: loaded.document[key] for key in loaded.document if key not in HEADER}
    ordered = _in_order(body, KubeSchedulerConfiguration)
    return leading_comments(loaded.text) + _comments(loaded) + dump_yaml({**HEADER, **ordered})


def _comments(loaded: Loaded) -> str:
    lines = []
    if loaded.written_as != API_VERSION:
        lines.append(f"# Converted from {loaded.written_as}.")
    for note in loaded.notes:
        lines += textwrap.wrap(
            str(note),
            _WIDTH,
            initial_indent="# - ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "".join(f"{line}\n" for line in lines)


def _in_order(raw: dict[str, Any], type_: Any) -> dict[str, Any]:
    """The fields of a Section that are given, in the order of the Section."""
    ordered = {}
    for field in msgspec.structs.fields(type_):
        value = raw.get(field.encode_name)
        if value is not None:
            ordered[field.encode_name] = _written(value, field.type)
    return ordered


def _written(value: Any, type_: Any) -> Any:
    inner = [type_, *(part for part in get_args(type_) if part is not type(None))]
    section = next((part for part in inner if _is_section(part)), None)
    if isinstance(value, list | tuple):
        return [_written(item, section) for item in value] if section else list(value)
    if isinstance(value, dict) and section is not None:
        return _in_order(value, section)
    if type_ is Duration:
        return str(Duration.parse(value)) if isinstance(value, str) else str(Duration())
    return value


def _is_section(type_: Any) -> bool:
    return get_origin(type_) is None and isinstance(type_, type) and issubclass(type_, Section)

"""Load a configuration: parse, convert, decode, default and validate.

    text ─ find_configuration ┬───────────────┬─ decode ─ apply_defaults ─ validate, check ─▶ Loaded
                              └─ legacy.to_v1 ┘

Problems of all steps are reported together: a misspelt field does not hide a bad percentage.
Arguments of plugins stay raw here; the runtime, which knows the plugins, decodes them. A caller
that has a registry passes `check`, so that the problems of plugins are part of the same list.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from mooring.config._field_errors import quote, required, unsupported
from mooring.config.decode import decode_partly
from mooring.config.defaults import apply_defaults
from mooring.config.legacy import OLD_VERSIONS, POLICY_VERSIONS, to_v1, with_leases
from mooring.config.lines import SourceLines
from mooring.config.manifests import POLICY_KIND, find_configuration
from mooring.config.notes import Findings, Note
from mooring.config.policy_source import PolicyFetcher, ReadConfigMap
from mooring.config.types import API_VERSION, KIND, KubeSchedulerConfiguration
from mooring.config.validate import validate
from mooring.errors import ConfigError, Problem

HEADER = {"apiVersion": API_VERSION, "kind": KIND}

Check = Callable[[KubeSchedulerConfiguration], list[Problem]]
"""Finds further problems; the configuration may have defaults where problems were found before."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration, its document and its notes."""

    config: KubeSchedulerConfiguration
    notes: tuple[Note, ...]
    document: dict[str, Any]  # in version v1, with its header and without any defaults
    written_as: str  # the apiVersion of the file, or Policy
    text: str  # the configuration alone, without other documents
    source: str  # names the file in messages
    lines: SourceLines  # of the values in the file


def default_configuration() -> KubeSchedulerConfiguration:
    """The configuration of a file with only apiVersion and kind."""
    return apply_defaults(KubeSchedulerConfiguration())


def load_file(path: str | Path) -> KubeSchedulerConfiguration:
    """Load a YAML or JSON file; raises ConfigError with every problem that could be found."""
    return read_file(path).config


def load_text(text: str, source: str = "<string>") -> KubeSchedulerConfiguration:
    """Load YAML or JSON; `source` names it in error messages."""
    return read_text(text, source).config


def read_file(
    path: str | Path, *, read_config_map: ReadConfigMap | None = None, check: Check | None = None
) -> Loaded:
    """Load a file of any version; see `read_text`. A Policy is also looked for beside the file."""
    source = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError([Problem(source, error.strerror or str(error))], source) from error
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text: byte {error.start} is not valid"
        raise ConfigError([Problem(source, message)], source) from error
    folder = Path(path).parent
    return read_text(text, source, folder=folder, read_config_map=read_config_map, check=check)


def read_text(
    text: str,
    source: str = "<string>",
    *,
    folder: Path | None = None,
    read_config_map: ReadConfigMap | None = None,
    check: Check | None = None,
) -> Loaded:
    """Load a text of any version, with notes on what changed since; raises ConfigError.

    The configuration may be inside a ConfigMap, or one of several documents. `read_config_map` is
    asked for the Policy that a v1alpha1 configuration has in the cluster.
    """
    found = find_configuration(text, source)
    parsed = found.parse()
    raw, problems = parsed.data, parsed.problems
    lines = parsed.lines if found.first_line else SourceLines()

    def refusal(problems: list[Problem]) -> ConfigError:
        # Of an old version only the fields that v1 has under the same path have a line.
        placed = [
            replace(one, line=lines.of(one.path, nearest=version == "v1")) for one in problems
        ]
        return ConfigError(sorted(placed, key=lambda one: one.line), found.source)

    version = "v1"
    if not isinstance(raw, dict):
        message = f"expected a {KIND}, got {quote(raw)}"
        raise refusal([*problems, Problem(found.source, message)])
    problems += _missing_header(raw)
    if foreign := _foreign_header(raw):
        # The file is of another kind: its fields are not checked.
        raise refusal([*problems, *foreign])
    findings = Findings()
    version = _version(raw)
    if version == "v1":
        document = with_leases(raw, findings)
    else:
        fetcher = PolicyFetcher(
            folder, found.siblings, found.config_maps, read_config_map, _kubeconfig(raw)
        )
        converted = to_v1(raw, version, findings, fetcher.fetch)
        problems += findings.problems
        if converted is None:
            raise refusal(problems)
        document = converted
    config, wrong = _decode(document, findings.problems, check)
    if config is None or problems or wrong:
        raise refusal([*problems, *wrong])
    return Loaded(
        config=config,
        notes=tuple(findings.notes),
        document={str(key): value for key, value in document.items()},
        written_as=POLICY_KIND if version == POLICY_KIND else str(raw.get("apiVersion")),
        text=found.text,
        source=found.source,
        lines=lines,
    )


def _decode(
    document: dict[Any, object], converting: list[Problem], check: Check | None
) -> tuple[KubeSchedulerConfiguration | None, list[Problem]]:
    """The configuration as far as it can be decoded, and its problems."""
    body = {key: value for key, value in document.items() if key not in HEADER}
    config, found = decode_partly(body, KubeSchedulerConfiguration)
    problems = [problem for problem in found if not _is_consequence(problem, converting)]
    if config is not None:
        config = apply_defaults(config)
        for further in (validate, check):
            earlier = [*converting, *problems]
            broken = further(config) if further is not None else []
            problems += [problem for problem in broken if not _is_consequence(problem, earlier)]
    return config, problems


def _kubeconfig(raw: dict[Any, object]) -> str:
    connection = raw.get("clientConnection")
    given = connection.get("kubeconfig") if isinstance(connection, dict) else None
    return given if isinstance(given, str) else ""


def _version(raw: dict[Any, object]) -> str:
    if raw.get("kind") == POLICY_KIND:
        return POLICY_KIND
    return str(raw.get("apiVersion") or API_VERSION).partition("/")[2]


def _missing_header(raw: dict[Any, object]) -> list[Problem]:
    expected = HEADER if raw.get("kind") != POLICY_KIND else {"apiVersion": POLICY_VERSIONS[0]}
    return [
        required(key, f'must be "{accepted}"')
        for key, accepted in expected.items()
        if raw.get(key) in (None, "")
    ]


def _foreign_header(raw: dict[Any, object]) -> list[Problem]:
    accepted = {"apiVersion": (API_VERSION, *OLD_VERSIONS), "kind": (KIND, POLICY_KIND)}
    if raw.get("kind") == POLICY_KIND:
        accepted["apiVersion"] = POLICY_VERSIONS
    return [
        unsupported(key, raw[key], choices)
        for key, choices in accepted.items()
        if raw.get(key) not in (None, "", *choices)
    ]


def _is_consequence(problem: Problem, earlier: list[Problem]) -> bool:
    """Whether the problem may only be due to a value that could not be decoded."""
    return any(_contains(problem.path, other.path) for other in earlier) or any(
        _contains(other.path, problem.path) for other in earlier
    )


def _contains(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))

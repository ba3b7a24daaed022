"""From a file to a configuration that can be relied on, or to the list of what is wrong with it.

    text ─ parse_yaml ─ header ─ decode ─ apply_defaults ─ validate ─▶ KubeSchedulerConfiguration

Problems of all steps are reported together: a misspelt field does not hide a bad percentage.
Arguments of plugins stay raw here; the runtime, which knows the plugins, decodes them.
"""

from pathlib import Path

from mooring.config._texts import quote, required, unsupported
from mooring.config.decode import decode_partly
from mooring.config.defaults import apply_defaults
from mooring.config.source import parse_yaml
from mooring.config.types import API_VERSION, KIND, KubeSchedulerConfiguration
from mooring.config.validate import validate
from mooring.errors import ConfigError, Problem

_HEADER = {"apiVersion": API_VERSION, "kind": KIND}


def default_configuration() -> KubeSchedulerConfiguration:
    """What a file with nothing but apiVersion and kind means."""
    return apply_defaults(KubeSchedulerConfiguration())


def load_file(path: str | Path) -> KubeSchedulerConfiguration:
    """Load a YAML or JSON file; raises ConfigError with every problem that could be found."""
    source = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError([Problem(source, error.strerror or str(error))], source) from error
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text: byte {error.start} is not valid"
        raise ConfigError([Problem(source, message)], source) from error
    return load_text(text, source)


def load_text(text: str, source: str = "<string>") -> KubeSchedulerConfiguration:
    """Load YAML or JSON; `source` names it in error messages."""
    raw, problems = parse_yaml(text, source)
    if not isinstance(raw, dict):
        message = f"expected a {KIND}, got {quote(raw)}"
        raise ConfigError([*problems, Problem(source, message)], source)
    problems += _missing_header(raw)
    if foreign := _foreign_header(raw):
        # It is something else: what its fields would be called here is of no interest.
        raise ConfigError([*problems, *foreign], source)
    body = {key: value for key, value in raw.items() if key not in _HEADER}
    config, found = decode_partly(body, KubeSchedulerConfiguration)
    problems += found
    if config is not None:
        config = apply_defaults(config)
        problems += [problem for problem in validate(config) if not _is_consequence(problem, found)]
    if config is None or problems:
        raise ConfigError(problems, source)
    return config


def _missing_header(raw: dict[object, object]) -> list[Problem]:
    return [
        required(key, f'must be "{accepted}"')
        for key, accepted in _HEADER.items()
        if raw.get(key) in (None, "")
    ]


def _foreign_header(raw: dict[object, object]) -> list[Problem]:
    return [
        unsupported(key, raw[key], [accepted])
        for key, accepted in _HEADER.items()
        if raw.get(key) not in (None, "", accepted)
    ]


def _is_consequence(problem: Problem, earlier: list[Problem]) -> bool:
    """Whether a rule may be broken only because decoding had to leave something out."""
    return any(_contains(problem.path, other.path) for other in earlier) or any(
        _contains(other.path, problem.path) for other in earlier
    )


def _contains(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))

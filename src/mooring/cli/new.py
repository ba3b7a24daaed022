"""`mooring new plugin`: a folder to start from, whose test passes before anything is changed.

The texts are in `templates/plugin`. Lines between `#[filter score]` and the next such line are kept
if one of these points was asked for, `#[end]` ends a part, and `{{word}}` stands for a word.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from mooring.cli.options import CommandOptions


class PointTemplate(NamedTuple):
    """What the templates say about a point, besides its method."""

    base: str
    does: str
    events: tuple[str, ...] = ()  # that wake the pods it refused
    example: str = ""  # of its argument


POINTS: Final = {
    "queue-sort": PointTemplate(
        "fw.QueueSort", "schedule pods with a label first", example='"first": "x"'
    ),
    "pre-enqueue": PointTemplate(
        "fw.PreEnqueue",
        "hold pods with a label",
        ("fw.Event.POD_LABELS_CHANGED",),
        '"hold": "later"',
    ),
    "pre-filter": PointTemplate(
        "fw.PreFilter", "pin pods to a node", ("fw.Event.NODE_ADDED",), '"pin": "x"'
    ),
    "filter": PointTemplate(
        "fw.Filter",
        "refuse nodes by a label",
        ("fw.Event.NODE_ADDED", "fw.Event.NODE_LABELS_CHANGED"),
        '"avoid": "x"',
    ),
    "post-filter": PointTemplate(
        "fw.PostFilter", "advise pods that fit nowhere", ("fw.Event.NODE_ADDED",), '"advice": "x"'
    ),
    "pre-score": PointTemplate("fw.PreScore", "let pods take any node", example='"anywhere": "x"'),
    "score": PointTemplate("fw.Score", "prefer nodes by a label", example='"prefer": "y"'),
    "reserve": PointTemplate(
        "fw.Reserve", "limit pods on their way", ("fw.Event.POD_DELETED",), '"atOnce": 1'
    ),
    "permit": PointTemplate(
        "fw.Permit", "bind groups together", ("fw.Event.POD_ADDED",), '"size": 3'
    ),
    "pre-bind": PointTemplate("fw.PreBind", "check the node once more", example='"recheck": False'),
    "bind": PointTemplate("fw.Bind", "bind some pods itself", example='"binds": "x"'),
    "post-bind": PointTemplate("fw.PostBind", "say where pods were placed"),
}
USUAL_POINTS: Final = ("filter", "score")
_LABELLED: Final = frozenset({"filter", "score", "post-bind"})  # they have the argument `label`
_BUILT: Final = frozenset({"filter", "pre-score", "score", "reserve"})  # tested without a cluster
_BOTH_USUAL: Final = "refuse and prefer nodes by a label"
_FILES: Final = {
    "plugin.py.txt": "{{module}}.py",
    "test_plugin.py.txt": "test_{{module}}.py",
    "config.yaml.txt": "config.yaml",
    "pods.yaml.txt": "pods.yaml",
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
}

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_ ][A-Za-z0-9]+)*")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_LONGEST_NAME: Final = 30
_WIDTH: Final = 100
_MOST_TOLD: Final = 3  # points that a summary describes; example arguments of a test


class BadName(ValueError):
    """A name that a plugin can't have."""


class Names(msgspec.Struct, frozen=True):
    """One name in its spellings."""

    class_: str  # PreferSsd
    module: str  # prefer_ssd
    kebab: str  # prefer-ssd


class NewPluginOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring new plugin` understands."""

    name: str
    folder: str
    point: Sequence[str]


def run(options: NewPluginOptions) -> int:
    """Make the folder; the exit code."""
    chosen = [point for point in POINTS if point in (options.point or USUAL_POINTS)]
    try:
        names = names_of(options.name)
        target = Path(options.folder or names.kebab)
        files = _files(names, chosen)
        _write(target, files)
    except (BadName, OSError) as error:
        why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        print(f"mooring new plugin: {why}", file=sys.stderr)
        return 1
    print(f"made {target} with {', '.join(files)}")
    print("\nNext:")
    print(f"  cd {target}")
    print("  python -m pytest")
    print(f"  {_TRY}")
    return 0


_TRY: Final = (
    "mooring cluster up --nodes 6 --zones 3 --scheduler --config config.yaml --apply pods.yaml"
)


def names_of(name: str) -> Names:
    """The spellings of a name; raises BadName with what was expected."""
    if not _NAME.fullmatch(name):
        raise BadName(
            f"{name!r} can't be a name: expected letters and digits, as in PreferSsd or prefer-ssd,"
            " beginning with a letter"
        )
    if len(name) > _LONGEST_NAME:
        raise BadName(f"{name!r} is too long: expected at most {_LONGEST_NAME} characters")
    words = _WORDS.findall(name)
    parts = re.split("[-_ ]", name)
    class_ = "".join(part[0].upper() + part[1:] for part in parts)
    module = "_".join(words).lower()
    _refuse_taken(class_, module)
    return Names(class_, module, module.replace("_", "-"))


def _refuse_taken(class_: str, module: str) -> None:
    from mooring.runtime.registry import Registry

    if keyword.iskeyword(module) or keyword.iskeyword(class_):
        raise BadName(f"{module!r} is a word of Python; expected another name")
    if module in sys.stdlib_module_names or _is_installed(module):
        raise BadName(f"there is a Python module called {module!r}; expected another name")
    if class_ in Registry.discover().names:
        raise BadName(f"there is a plugin called {class_} already; expected another name")


def _is_installed(module: str) -> bool:
    found = importlib.util.find_spec(module)
    return found is not None and found.origin is not None  # a folder alone is no module


def _files(names: Names, points: Collection[str]) -> dict[str, str]:
    words = _words(names, points)
    folder = resources.files("mooring.cli") / "templates" / "plugin"
    return {
        _filled(target, words): render((folder / source).read_text(encoding="utf-8"), points, words)
        for source, target in _FILES.items()
    }


def _words(names: Names, points: Collection[str]) -> dict[str, str]:
    chosen = [POINTS[point] for point in points]
    bases = [f"fw.Plugin[{names.class_}Args]", *(point.base for point in chosen)]
    if "reserve" in points and "post-bind" not in points:
        bases.append("fw.PostBind")  # a reservation ends there
    events = list(dict.fromkeys(event for point in chosen for event in point.events))
    examples = ['"label": "zone"'] if _LABELLED & set(points) else []
    examples += [point.example for point in chosen if point.example]
    kit = ["Simulation", *(["build"] if _BUILT & set(points) else []), "check_plugin", "node"]
    kit += ["nodes", "pod"] if "pre-score" in points else ["pod"]
    return {
        "class": names.class_,
        "module": names.module,
        "kebab": names.kebab,
        "summary": _summary(points),
        "class_line": _class_line(names.class_, bases),
        "events": _events(events),
        "example_args": "{" + ", ".join(examples[:_MOST_TOLD]) + "}",
        "kit": ", ".join(kit),
    }


def _events(events: Sequence[str]) -> str:
    """The inside of the tuple: one line if it fits, else broken as a formatter does."""
    listed = ", ".join(events) + ("," if len(events) == 1 else "")
    if len(f"    wakes_on = ({listed})") <= _WIDTH:
        return listed
    return "".join(f"\n        {event}," for event in events) + "\n    "


def _summary(points: Collection[str]) -> str:
    has_both = set(USUAL_POINTS) <= set(points)
    does = [_BOTH_USUAL] if has_both else []
    does += [POINTS[one].does for one in points if not (has_both and one in USUAL_POINTS)]
    if len(does) > _MOST_TOLD:
        return f"A plugin at {len(points)} extension points."
    text = " and ".join(filter(None, (", ".join(does[:-1]), does[-1])))
    return f"{text[0].upper()}{text[1:]}."


def _class_line(name: str, bases: Sequence[str]) -> str:
    """One line if it fits, else broken as a formatter does."""
    listed = ", ".join(bases)
    if len(f"class {name}({listed}):") <= _WIDTH:
        return f"class {name}({listed}):"
    if len(f"    {listed}") > _WIDTH:
        listed = ",\n    ".join(bases) + ","
    return f"class {name}(\n    {listed}\n):"


def render(text: str, points: Collection[str], words: Mapping[str, str]) -> str:
    """A template without the parts for other points, and with the words filled in."""
    kept, is_wanted = [], True
    for line in text.splitlines():
        if line.startswith("#["):
            marks = line[2:-1].split()
            is_wanted = marks == ["end"] or not set(marks).isdisjoint(points)
        elif is_wanted:
            kept.append(line)
    return _filled("\n".join(kept).rstrip() + "\n", words)


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: words[found[1]], text)


def _write(target: Path, files: Mapping[str, str]) -> None:
    """Write all files into a new or empty folder."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadName(f"{target} exists already; expected a new folder, or an empty one")
    target.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        with (target / name).open("x", encoding="utf-8") as file:
            file.write(text)

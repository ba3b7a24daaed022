"""The files of the page: small, joined without clashes, and without anything from elsewhere."""

from __future__ import annotations

import gzip
import re
from collections import Counter

import pytest

from mooring.ui.assets import MAIN, joined, web_assets

MODULES = {path: one.body.decode() for path, one in web_assets().items() if path.endswith(".js")}
_DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
_IMPORTED = re.compile(r'^import (?:\{ ([^}]*) \} from )?"([^"]+)";$', re.MULTILINE)


def test_the_whole_page_is_small() -> None:
    assert sum(len(one.packed) for one in web_assets().values()) < 60_000
    assert len(MODULES["core.js"].splitlines()) <= 150


def test_no_name_is_taken_twice_so_that_modules_can_be_joined() -> None:
    names = Counter(name for text in MODULES.values() for name in _DECLARED.findall(text))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("path", sorted(MODULES))
def test_imports_what_is_exported_and_uses_it(path: str) -> None:
    text = MODULES[path]
    folder = path.rpartition("/")[0]
    assert len(re.findall(r"^import ", text, re.MULTILINE)) == len(_IMPORTED.findall(text))
    rest = _IMPORTED.sub("", text)
    for names, source in _IMPORTED.findall(text):
        target = source.removeprefix("./")
        if source.startswith("../"):
            target = source.removeprefix("../")
        elif folder:
            target = f"{folder}/{target}"
        exported = _EXPORTED.findall(MODULES[target])
        for name in filter(None, map(str.strip, names.split(","))):
            assert name in exported, f"{target} does not export {name}"
            assert re.search(rf"\b{name}\b", rest), f"{name} is not used"


@pytest.mark.parametrize("path", sorted(MODULES))
def test_text_is_never_made_into_html_or_code(path: str) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function"
    assert not re.search(forbidden, MODULES[path])


def test_nothing_comes_from_elsewhere() -> None:
    for path, one in web_assets().items():
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", one.body.decode()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path


def test_every_module_is_loaded_at_once() -> None:
    index = web_assets()["index.html"].body.decode()
    named = re.findall(r'rel="modulepreload" href="([^"]+)"', index)
    assert sorted([*named, MAIN]) == sorted(MODULES)


def test_joined_has_every_module_and_no_import() -> None:
    text = joined(web_assets())
    assert not re.search(r"^(?:import|export) ", text, re.MULTILINE)
    for path, module in MODULES.items():
        first = _DECLARED.findall(module)
        assert all(name in text for name in first), path
    assert text.endswith(MODULES[MAIN][-200:])


def test_files_are_packed() -> None:
    for one in web_assets().values():
        assert gzip.decompress(one.packed) == one.body

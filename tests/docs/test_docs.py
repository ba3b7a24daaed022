"""Every example in the documentation runs; those of both tutorials in tests/installed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from types import ModuleType

import pytest
from tests.sizes import sized

from mooring import config as cfg
from mooring.cli import main
from mooring.runtime.profile import plan_profiles
from mooring.runtime.registry import Registry

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = [ROOT / name for name in NAMES]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
TEXTS = [*PAGES, ROOT / "deploy/README.md"]
TEXTS += sorted((ROOT / "examples").rglob("*.md"))
_FENCE = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, kind: str) -> Iterator[str]:
    for found in _FENCE.finditer(page.read_text(encoding="utf-8")):
        if found["kind"] == kind:
            yield found["text"]


def row_blocks(page: Path) -> Iterator[list[str]]:
    """The lines that begin with a pipe, as far as they follow each other; without code."""
    lines = _FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()
    for is_row, block in groupby(lines, key=lambda line: line.startswith("|")):
        if is_row:
            yield list(block)


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]


def pages_with(kind: str, *besides: str) -> list[object]:
    """One page for all that have the same blocks: a translation has those of the original."""
    pages: dict[tuple[str, ...], Path] = {}
    for page in PAGES:
        pages.setdefault(tuple(blocks(page, kind)), page)
    names = {str(page.relative_to(ROOT)): page for found, page in pages.items() if found}
    return [pytest.param(page, id=name) for name, page in names.items() if name not in besides]


@pytest.mark.parametrize("page", pages_with("python", "docs/tutorial.md"))
def test_runs_the_python_of(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("page_under_test")  # a real module, as argument classes look theirs up
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for number, text in enumerate(blocks(page, "python"), start=1):
        code = compile(text, f"{page.name}, block {number}", "exec", dont_inherit=True)
        exec(code, vars(module))


def test_runs_the_tests_of_the_page_about_pytest(tmp_path: Path) -> None:
    (text,) = blocks(ROOT / "docs/howto/test-with-pytest.md", "python")
    (tmp_path / "test_prefer_ssd.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if sized(1) == 1:
        command += ["-k", "not contract"]  # it takes longest, and other tests have it
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    assert found.stdout.count(" passed") == 1


@pytest.mark.parametrize("page", pages_with("yaml"))
def test_accepts_the_configurations_of(page: Path) -> None:
    whole = [text for text in blocks(page, "yaml") if text.startswith("apiVersion: kubescheduler")]
    for text in whole:
        assert plan_profiles(cfg.load_text(text, page.name), Registry.discover())


@pytest.mark.parametrize("page", pages_with("console"))
def test_prints_what_is_shown_in(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in blocks(page, "console"):
        command, _, expected = text.partition("\n")
        program, *words = shlex.split(command.removeprefix("$ "))
        assert program == "mooring"
        monkeypatch.chdir(ROOT)
        with suppress(SystemExit):  # --version ends like that
            main(words)
        assert capsys.readouterr().out == expected


def test_links_to_pages_that_exist() -> None:
    links = [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not target.startswith("http")
    ]
    assert not [(page, target) for page, target in links if not (page.parent / target).exists()]


def test_names_source_files_that_exist() -> None:
    """In the pages that say where things are; decisions are about their time."""
    for page in (ROOT / "docs/architecture.md", ROOT / "CONTRIBUTING.md"):
        text = page.read_text(encoding="utf-8")
        for name in set(re.findall(r"(?:[\w.-]+/)+[\w.-]+\.(?:py|txt|md)\b", text)):
            found = [
                *ROOT.glob(name),
                *ROOT.glob(f"docs/{name}"),
                *ROOT.glob(f"src/mooring/{name}"),
            ]
            found += ROOT.glob(f"src/mooring/*/{name}")
            assert found or "<" in name, f"{page.name}: {name}"


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in TEXTS])
def test_has_each_row_in_a_table(page: Path) -> None:
    for header, *rows in row_blocks(page):
        ruler = cells(rows[0]) if rows else [""]
        assert all(re.fullmatch(":?-+:?", cell) for cell in ruler), f"in no table: {header}"
        wrong = [row for row in (header, *rows) if len(cells(row)) != len(ruler)]
        assert not wrong, f"other columns than its table: {wrong[0]}"

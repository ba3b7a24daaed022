"""`mooring new plugin`, from the name to a passing test."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.sizes import sized

from mooring.cli import main
from mooring.cli.commands import NEW_PLUGIN_POINTS
from mooring.cli.new import POINTS, BadName, names_of
from mooring.framework.plugin import POINTS as EVERY_POINT

ROOT = Path(__file__).resolve().parents[2]
ALL = [word for point in POINTS for word in ("--point", point)]
LONG = "AVeryLongNameThatIsStillLegal1"
assert len(LONG) == 30


CASES: dict[str, Sequence[str]] = {
    "PreferZone": (),
    "tidy-name": ("--point", "score", "--point", "post-bind"),
    LONG: ALL,
    **{f"only-{point}": ("--point", point) for point in POINTS},
}


def run(folder: Path, *words: str) -> str:
    found = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one folder for each case."""
    folder = tmp_path_factory.mktemp("made")
    for name, points in CASES.items():
        target = folder / names_of(name).kebab
        assert main(["new", "plugin", name, "--folder", str(target), *points]) == 0
    return folder


def test_makes_plugins_whose_tests_pass(made: Path) -> None:
    tried = [str(made / names_of(name).kebab) for name in CASES]
    # The checks of the contract take longest: by default those of all points. The second tutorial
    # has the plugin that is made without --point.
    chosen = f"not honours or {names_of(LONG).module}" if sized(1) == 1 else ""
    said = run(made, "pytest", "-q", "-p", "no:cacheprovider", "-rA", *tried, "-k", chosen)
    assert " passed" in said
    assert all(f"test_{names_of(name).module}.py" in said for name in CASES)


def test_makes_configurations_that_are_valid(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CASES:
        folder = made / names_of(name).kebab
        monkeypatch.syspath_prepend(str(folder))
        code = main(["config", "validate", str(folder / "config.yaml")])
        assert code == 0, capsys.readouterr().err


def test_knows_every_extension_point() -> None:
    def folded(name: str) -> str:
        return name.replace("-", "").lower()

    assert {folded(point) for point in POINTS} == {folded(point) for point in EVERY_POINT}
    assert tuple(POINTS) == NEW_PLUGIN_POINTS


def test_makes_code_that_is_formatted_and_linted(made: Path) -> None:
    run(made, "ruff", "check", "--no-cache", ".")
    run(made, "ruff", "format", "--no-cache", "--check", ".")


def test_makes_code_that_is_typed(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", ":".join(map(str, made.iterdir())))
    files = [str(file) for file in made.glob("*/*.py")]
    assert len(files) == 2 * len(CASES)
    run(ROOT, "mypy", *files)  # with the settings of the repository, whose modules it knows


def test_makes_a_configuration_that_is_valid(made: Path) -> None:
    said = run(made / "prefer-zone", "mooring", "config", "validate", "config.yaml")
    assert said == "config.yaml: valid; 1 profile: prefer-zone\n"


def test_makes_a_package_that_announces_the_plugin(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    assert main(["new", "plugin", "PreferZone", "--folder", str(folder)]) == 0
    run(folder, "hatchling", "build", "-t", "wheel")
    [wheel] = (folder / "dist").iterdir()
    with zipfile.ZipFile(wheel) as content:
        inside = {
            name.rpartition("/")[2]: content.read(name).decode() for name in content.namelist()
        }
    assert "class PreferZone(" in inside["prefer_zone.py"]
    assert "test_prefer_zone.py" not in inside
    assert "[mooring.plugins]\nPreferZone = prefer_zone:PreferZone" in inside["entry_points.txt"]


def test_says_what_it_made_and_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "plugin", "PreferZone"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("made prefer-zone with prefer_zone.py, test_prefer_zone.py, config.yaml")
    assert "  cd prefer-zone\n  python -m pytest\n  mooring cluster up " in said
    made = {found.name for found in (tmp_path / "prefer-zone").iterdir()}
    assert made == {
        "prefer_zone.py",
        "test_prefer_zone.py",
        "config.yaml",
        "pods.yaml",
        "pyproject.toml",
        "README.md",
    }
    texts = [found.read_text() for found in (tmp_path / "prefer-zone").iterdir()]
    assert not [text for text in texts if "{{" in text or "#[" in text]


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("PreferTape", ("PreferTape", "prefer_tape", "prefer-tape")),
        ("prefer-tape", ("PreferTape", "prefer_tape", "prefer-tape")),
        ("prefer_tape", ("PreferTape", "prefer_tape", "prefer-tape")),
        ("prefer tape", ("PreferTape", "prefer_tape", "prefer-tape")),
        ("PreferTAPE", ("PreferTAPE", "prefer_tape", "prefer-tape")),
        ("GPUFirst", ("GPUFirst", "gpu_first", "gpu-first")),
        ("zone2zone", ("Zone2zone", "zone2_zone", "zone2-zone")),
        ("headroom", ("Headroom", "headroom", "headroom")),
    ],
)
def test_spells_a_name_as_class_module_and_folder(
    name: str, spellings: tuple[str, str, str]
) -> None:
    found = names_of(name)
    assert (found.class_, found.module, found.kebab) == spellings


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "can't be a name: expected letters and digits"),
        ("2fast", "beginning with a letter"),
        ("a/b", "can't be a name"),
        ("../up", "can't be a name"),
        ("prefer-", "can't be a name"),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}", "can't be a name"),
        ("x" * 31, "expected at most 30 characters"),
        ("class", "is a word of Python"),
        ("json", "there is a Python module called 'json'"),
        ("numpy", "there is a Python module called 'numpy'"),
        ("Mooring", "there is a Python module called 'mooring'"),
        ("NodeName", "there is a plugin called NodeName already"),
    ],
)
def test_refuses_names_that_would_not_work(
    name: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadName, match=why):
        names_of(name)
    assert main(["new", "plugin", name, "--folder", str(tmp_path / "made")]) == 1
    assert why in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_never_overwrites_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["new", "plugin", "PreferZone", "--folder"]
    full, empty, file = tmp_path / "full", tmp_path / "empty", tmp_path / "file"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    file.write_text("mine")
    for taken in (full, file, file / "below"):
        assert main([*words, str(taken)]) == 1
        assert f"mooring new plugin: {taken}" in capsys.readouterr().err
    assert [found.name for found in full.iterdir()] == ["notes.txt"]
    empty.mkdir()
    assert main([*words, str(empty)]) == 0
    assert main([*words, str(empty)]) == 1
    assert "exists already; expected a new folder, or an empty one" in capsys.readouterr().err


def test_offers_the_points_it_has_texts_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["new", "plugin", "X", "--point", "nonsense"])
    said = capsys.readouterr().err
    assert all(f"'{point}'" in said for point in POINTS)


def test_shows_help_when_not_told_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new"]) == 2
    assert "usage: mooring new" in capsys.readouterr().out

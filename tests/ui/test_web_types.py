"""The modules of the page fit together: their JSDoc types, checked by TypeScript where it is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.typescript import TypeScriptError, tsc

import mooring.ui

WEB = Path(mooring.ui.__file__).parent / "web"
OPTIONS = {
    "allowJs": True,
    "checkJs": True,
    "noEmit": True,
    "target": "es2022",
    "module": "es2022",
    "moduleResolution": "bundler",
    "lib": ["es2023", "dom", "dom.iterable"],
    "types": [],
    "skipLibCheck": True,
    "strictBindCallApply": True,
    "strictFunctionTypes": True,
    "noImplicitThis": True,
    "noFallthroughCasesInSwitch": True,
    "noUnusedLocals": True,
}


def errors(folder: Path, scratch: Path) -> list[str]:
    try:
        command = tsc(install=os.environ.get("MOORING_REQUIRE_REAL") == "1")
    except TypeScriptError as error:
        pytest.skip(str(error))
    project = scratch / "tsconfig.json"
    project.write_text(json.dumps({"compilerOptions": OPTIONS, "include": [f"{folder}/**/*.js"]}))
    done = subprocess.run(
        [*command, "--pretty", "false", "-p", str(project)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if ": error " in line]
    assert bool(found) == bool(done.returncode), done.stdout + done.stderr
    return found


def test_the_types_of_the_page_fit(tmp_path: Path) -> None:
    assert errors(WEB, tmp_path) == []


def test_a_type_that_does_not_fit_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "one.js").write_text(
        "/** @param {number} n */\nexport function half(n) { return n / 2; }\n"
    )
    (folder / "two.js").write_text('import { half } from "./one.js";\nhalf("4");\n')
    (found,) = errors(folder, tmp_path)
    assert "two.js(2,6): error TS2345" in found

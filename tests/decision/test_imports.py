"""No module of the engine needs more than a few others, and the drawing in the docs is true."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "src/mooring/decision"
MODULES = sorted(path.stem for path in ROOM.glob("*.py") if path.stem != "__init__")
MOST = 6


def imports(module: str) -> set[str]:
    """The modules of ours that a module of the engine imports; a name of a package is of it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((ROOM / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                path = ROOT / "src" / (full.replace(".", "/") + ".py")
                found.add(full if path.exists() else node.module)
    return {name for name in found if name.partition(".")[0] == "mooring"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_at_most_six_others(module: str) -> None:
    assert len(imports(module)) <= MOST, sorted(imports(module))


def test_the_architecture_page_draws_the_modules_and_what_they_import() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    drawn = {
        match[1]: set(match[2].replace("-", "").split())
        for match in re.finditer(r"^\| `(\w+)\.py` \|[^|]*\| ([\w -]*) \|$", text, re.MULTILINE)
    }
    own = "mooring.decision."
    real = {
        module: {name.removeprefix(own) for name in imports(module) if name.startswith(own)}
        for module in MODULES
    }
    assert drawn == real

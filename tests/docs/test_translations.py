"""The pages in Chinese have the code and the commands of the English ones, which run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_CODE = re.compile(r"^<!-- [^\n]* -->$|^```\w+\n.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["tutorial.md", "tutorial-cluster.md"])
def test_has_the_same_code_and_commands(page: str) -> None:
    english = (DOCS / page).read_text(encoding="utf-8")
    chinese = (DOCS / "zh-CN" / page).read_text(encoding="utf-8")
    assert _CODE.findall(chinese) == _CODE.findall(english)
    assert len(re.findall("^## ", chinese, re.MULTILINE)) == len(
        re.findall("^## ", english, re.MULTILINE)
    )


def test_both_readmes_have_the_same_commands_to_install() -> None:
    readmes = [DOCS.parent / name for name in ("README.md", "README.zh-CN.md")]
    first = [re.findall(r"^```sh\n(.*?)^```$", one.read_text(), re.M | re.S)[0] for one in readmes]
    assert first[0] == first[1]

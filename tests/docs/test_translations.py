"""The pages in Chinese have the code and the commands of the English ones, which run.

The code of both tutorials in English runs in CI: in tests/installed, from the wheel, as printed.
Every block of the Chinese pages, and every step said about one, is the same byte for byte and in
the same order, so it is that code which runs. A second run of the same bytes would find nothing
that this comparison does not.
"""

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
    blocks = _CODE.findall(chinese)
    assert len(blocks) > 6
    assert blocks == _CODE.findall(english)
    assert chinese.count("```") == 2 * sum(one.startswith("```") for one in blocks)  # none escapes
    assert len(re.findall("^## ", chinese, re.MULTILINE)) == len(
        re.findall("^## ", english, re.MULTILINE)
    )


def test_both_readmes_have_the_same_commands_to_install() -> None:
    readmes = [DOCS.parent / name for name in ("README.md", "README.zh-CN.md")]
    first = [re.findall(r"^```sh\n(.*?)^```$", one.read_text(), re.M | re.S)[0] for one in readmes]
    assert first[0] == first[1]

"""What is in the wheel and in the source package."""

from __future__ import annotations

import re
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

from hatch_build import readme_for_an_index


def test_the_metadata_has_no_dead_links(dist: Path) -> None:
    [wheel] = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        [name] = [name for name in content.namelist() if name.endswith("METADATA")]
        metadata = Parser().parsestr(content.read(name).decode())
    assert "test" in metadata.get_all("Provides-Extra", [])
    text = str(metadata.get_payload())
    assert "# mooring" in text
    assert re.findall(r"\]\((?!https?:|#)", text) == []


def test_links_are_absolute_where_the_address_is_known() -> None:
    text = "[how-to](docs/howto/README.md) ![demo](docs/images/demo.svg) [k8s](https://k8s.io)"
    assert readme_for_an_index(text, "https://example.org/mooring") == (
        "[how-to](https://example.org/mooring/blob/main/docs/howto/README.md)"
        " ![demo](https://example.org/mooring/raw/main/docs/images/demo.svg) [k8s](https://k8s.io)"
    )
    assert readme_for_an_index(text, "") == "how-to  [k8s](https://k8s.io)"


def test_the_source_package_has_pages_and_examples(dist: Path) -> None:
    [sdist] = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    for wanted in (
        "docs/tutorial.md",
        "docs/zh-CN/tutorial.md",
        "examples/namescore/namescore.py",
        "hatch_build.py",
        "README.zh-CN.md",
        "src/mooring/py.typed",
    ):
        assert wanted in names

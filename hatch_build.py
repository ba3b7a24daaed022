"""The README and the addresses in the metadata of a package.

An index shows the README without the files around it, so links to them have to be absolute. The
address of the project comes from MOORING_PROJECT_URL at build time; without one the links become
plain text, and the picture is left out, so that nothing shown is a dead end.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<target>[^)\s]+)\)")


def readme_for_an_index(text: str, url: str) -> str:
    """The README with links that work without the repository around it."""

    def replace(found: re.Match[str]) -> str:
        target, is_picture = found["target"], bool(found["picture"])
        if not url:
            return "" if is_picture else found["text"]
        view = "raw" if is_picture else "blob"
        return f"{found['picture']}[{found['text']}]({url}/{view}/main/{target})"

    return _LINK.sub(replace, text)


class CustomMetadataHook(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        url = os.environ.get("MOORING_PROJECT_URL", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": readme_for_an_index(text, url),
        }
        if url:
            metadata["urls"] = {
                "Homepage": url,
                "Documentation": f"{url}/blob/main/docs/howto/README.md",
                "Source": url,
                "Issues": f"{url}/issues",
                "Changelog": f"{url}/blob/main/CHANGELOG.md",
            }

"""The page and its data in one file, which opens without a server: `mooring ui FILE --html OUT`.

Style, script and data are inside; a policy in its head lets the browser run this script alone, by
its hash, and load nothing from anywhere. The data are the answers of `/lens/v1` by their paths,
packed; what is not among them the page says it has not.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from mooring.lens.api import WaitingPodRow
from mooring.lens.offline import OfflineLens
from mooring.lens.waiting_list import MOST_ROWS
from mooring.ui.assets import STYLE, joined, web_assets

MOST_EXPLAINED: Final = 200  # pods that wait
MOST_MATRICES: Final = 20


def one_file(lens: OfflineLens) -> bytes:
    """The whole page."""
    assets = web_assets()
    style, script = assets[STYLE].body.decode(), joined(assets)
    data = base64.b64encode(gzip.compress(msgspec.json.encode(answers(lens)), 6, mtime=0)).decode()
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    parts = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}" />',
        '<meta name="viewport" content="width=device-width, initial-scale=1" />',
        '<meta name="color-scheme" content="light dark" />\n<title>mooring</title>',
        f"<style>{style}</style>\n</head>\n<body>",
        f'<script type="text/plain" id="mooring-data">{data}</script>',
        f'<script type="module">{script}</script>\n</body>\n</html>\n',
    )
    return "\n".join(parts).encode()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def answers(lens: OfflineLens) -> dict[str, Any]:
    """What the page may ask for, by path."""
    state, queue = lens.state(), lens.queue("", MOST_ROWS)
    found: dict[str, Any] = {"state": state, "queue": queue, "records": lens.records()}
    for name in state.nodes.names:
        found[f"nodes/{name}"] = lens.node(name)
    for number, pod in enumerate(_one_of_each_first(queue.pods)[:MOST_EXPLAINED]):
        key = f"{pod.namespace}/{pod.name}"
        found[f"pods/{key}/explain"] = lens.explain(key, "remedies")
        if number < MOST_MATRICES:
            found[f"pods/{key}/explain?depth=matrix"] = lens.explain(key, "matrix")
    return found


def _one_of_each_first(pods: Iterable[WaitingPodRow]) -> list[WaitingPodRow]:
    """Pods that ask for something else before those that are like them."""
    seen: set[tuple[object, ...]] = set()
    first: list[WaitingPodRow] = []
    rest: list[WaitingPodRow] = []
    for pod in pods:
        alike = (pod.place, pod.plugins, pod.shape, pod.namespace)
        (rest if alike in seen else first).append(pod)
        seen.add(alike)
    return first + rest

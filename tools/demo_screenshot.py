"""Take the picture of `mooring demo` for the README: `python -m tools.demo_screenshot [FILE]`.

An SVG that needs nothing from the network: any monospace font will do.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from mooring.cli.demo.command import demo

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "demo.svg"
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
WIDTH = 92  # columns; the lines of the story are wrapped to it


def take() -> str:
    """The demo as one picture: the story, and the live view as it is at the end."""
    console = Console(
        record=True,
        file=io.StringIO(),
        width=WIDTH,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
    )
    if demo(console=console, live=False) != 0:
        raise SystemExit("the demo did not go as it should; no picture was taken")
    return without_fonts(console.export_svg(title="mooring demo", theme=MONOKAI, unique_id="demo"))


def without_fonts(svg: str) -> str:
    """The same picture in the reader's own font; rich would have one fetched from afar."""
    svg = re.sub(r"\s*@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: Fira Code, monospace", f"font-family: {FONTS}", svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(take(), encoding="utf-8")
    print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

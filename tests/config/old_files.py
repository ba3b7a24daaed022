"""The files of older versions that tests convert, and what they are expected to become."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent / "data"
OLD = sorted((DATA / "old").iterdir())
SEEDS = sorted((DATA / "seeds").iterdir())


def expected(old: Path) -> Path:
    return DATA / "v1" / f"{old.stem}.yaml"

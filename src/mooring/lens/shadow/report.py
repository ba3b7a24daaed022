"""What a shadow found: counts, the latest differences, and a file with all of them."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from mooring.lens.shadow.comparison import EQUAL, EXPLAINED, RESULTS, Comparison, Result
from mooring.observe.metrics import Metrics

log = logging.getLogger(__name__)

_KEPT: Final = 20  # differences for the text


class ShadowReport:
    """Collects comparisons; `path`, if given, gets one JSON line for each difference."""

    def __init__(self, metrics: Metrics, path: str = "") -> None:
        self.counts: Counter[Result] = Counter()
        self.latest: deque[Comparison] = deque(maxlen=_KEPT)  # differences that need a look
        self._metric = metrics.shadow_comparisons
        self._path = path
        self._file: IO[bytes] | None = None
        if path:
            self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - until `close`

    def add(self, found: Comparison) -> None:
        self.counts[found.result] += 1
        self._metric.labels(found.result).add()
        if found.result == EQUAL:
            return
        if found.result not in EXPLAINED:
            self.latest.append(found)
            extra = {"pod": found.pod, "theirs": found.theirs, "ours": found.ours}
            log.info(
                "another decision",
                extra={**extra, "result": found.result, "why": found.why, "v": 0},
            )
        self._write(found)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def text(self) -> str:
        """For a person, when the comparison ends."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        total = self.counts.total()
        yield f"{total:,} decisions of the other scheduler compared"
        width = max(map(len, RESULTS))
        for result, meaning in RESULTS.items():
            if self.counts[result]:
                yield f"  {self.counts[result]:>7,}  {result:<{width}}  {meaning}"
        unexplained = sum(n for result, n in self.counts.items() if result not in EXPLAINED)
        if not unexplained:
            yield "No difference but ties and sampling." if total else "Nothing to compare yet."
            return
        more = f", the last {_KEPT}" if unexplained > _KEPT else ""
        yield f"Differences to look at{more}:"
        for found in self.latest:
            nodes = f"theirs {found.theirs or '-'}, ours {found.ours or '-'}"
            yield f"  {found.pod}: {nodes} ({found.result}: {found.why})"
        if self._path:
            yield f"All differences: {self._path}"

    def _write(self, found: Comparison) -> None:
        if self._file is None:
            return
        try:
            self._file.write(msgspec.json.encode(found) + b"\n")
        except OSError as error:
            extra = {"file": self._path, "error": error.strerror or str(error)}
            log.warning("the report cannot be written any more; comparing goes on", extra=extra)
            self.close()

"""The filters of a profile without the answers about many nodes at once: the specification."""

from __future__ import annotations

from typing import Any

from mooring.framework._internal import InternalWhatIf


class OneByOne:
    """The same filters, which can't be asked about many nodes at once."""

    def __init__(self, asked: InternalWhatIf) -> None:
        self.add_pod = asked.add_pod
        self.remove_pod = asked.remove_pod
        self.fits = asked.fits
        self.fixed = asked.fixed
        self.is_ours = asked.is_ours
        self.nominated_on = asked.nominated_on
        self.nominator = asked.nominator

    def basis(self, *_: Any) -> None:
        return None

    def without_pods(self, *_: Any) -> None:
        return None

    def fits_all(self, *_: Any) -> None:
        raise AssertionError("asked about many")

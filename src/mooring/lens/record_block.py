"""Some hundred entries of the record as bytes: a fifth of what they take as objects.

MessagePack rather than columns: to make columns costs Python a step for every field of every
entry, to pack them costs none. Entries are read back when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mooring.lens.api import BindResult
from mooring.lens.record_entry import RecordEntry, Why

_Ended = tuple[BindResult, float | None, float | None, Why | None]  # the end of a bind
_decoder: msgspec.msgpack.Decoder[list[RecordEntry]] = msgspec.msgpack.Decoder(list[RecordEntry])


class RecordBlock(msgspec.Struct):
    """Entries with numbers from `first` on, without a gap."""

    first: int
    packed: bytes
    whys: tuple[Why, ...]  # why attempts failed; equal ones once
    late: dict[int, _Ended]  # by number

    @classmethod
    def of(cls, entries: Sequence[RecordEntry]) -> RecordBlock:
        """Entries with consecutive numbers."""
        known: dict[str, int] = {}
        whys: list[Why] = []

        def number(why: Any) -> int:
            found = known.setdefault(why.message, len(whys))
            if found == len(whys):
                whys.append(why)
            return found

        for entry in entries:
            if entry.why is not None:
                break
        else:
            return cls(entries[0].seq, msgspec.msgpack.encode(entries), (), {})
        numbered = [
            entry if entry.why is None else msgspec.structs.replace(entry, why=number(entry.why))
            for entry in entries
        ]
        return cls(entries[0].seq, msgspec.msgpack.encode(numbered), tuple(whys), {})

    @property
    def size(self) -> int:
        """Bytes, about."""
        return len(self.packed) + sum(2 * len(why.message) + 500 for why in self.whys)

    def end(self, entry: RecordEntry) -> None:
        """The bind of one of them has ended."""
        self.late[entry.seq] = entry.bind, entry.bind_took, entry.permit_took, entry.why

    def may_have(self, pod: str) -> bool:
        """Whether a pod of this name can be among them: False is sure."""
        return pod.encode(errors="surrogatepass") in self.packed

    def entries(self) -> Iterable[RecordEntry]:
        """The newest first."""
        found = _decoder.decode(self.packed)
        for entry in reversed(found):
            if entry.why is not None:
                entry.why = self.whys[entry.why]
            late = self.late.get(entry.seq)
            if late is not None:
                entry.bind, entry.bind_took, entry.permit_took = late[:3]
                entry.why = late[3] or entry.why
            yield entry

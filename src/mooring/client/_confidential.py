"""Structs with fields that must not be printed: keys, tokens, passwords."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class Confidential(msgspec.Struct, frozen=True):
    """A struct of which the fields named by `secret` are not shown."""

    secret: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        # Both ways of printing, because msgspec writes both and would show everything.
        names = (name for name in self.__struct_fields__ if name not in self.secret)
        return [(name, getattr(self, name)) for name in names]

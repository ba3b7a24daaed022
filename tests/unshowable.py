"""An exception that ends the process when its text is taken."""

from typing import Final


class Parting(Exception):
    def __str__(self) -> str:
        raise SystemExit(9)

    __repr__ = __str__


RAISES_PARTING: Final = """
class Parting(Exception):
    def __str__(self):
        raise SystemExit(9)

raise Parting
"""
"""A module that cannot be imported, and whose error cannot be shown."""

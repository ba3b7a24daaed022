"""Quantities in the canonical form in which a kube-apiserver returns them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mooring.api.quantity import Quantity, parse_quantity
from mooring.cluster.apiserver.store import Object

_MILLI = 10**6  # billionths; the finest step that lists of resources keep


class BadQuantity(ValueError):
    """Not a quantity; the message is kube-apiserver's."""

    def __init__(self) -> None:
        super().__init__(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )


@lru_cache(maxsize=65_536)
def canonical(amount: str | int | float) -> str:
    """The canonical form of a quantity: 1000m is 1, 1024Mi is 1Gi."""
    return str(_parsed(amount))


@lru_cache(maxsize=65_536)
def canonical_milli(amount: str | int | float) -> str:
    """The same, rounded up to thousandths."""
    quantity = _parsed(amount)
    if quantity.nanos % _MILLI:
        quantity = Quantity(-(-quantity.nanos // _MILLI) * _MILLI, quantity.format)
    return str(quantity)


def spell_resources(holder: Object, *fields: str) -> None:
    """Canonicalise all quantities of resource lists, such as requests and limits."""
    for field in fields:
        if amounts := holder.get(field):
            holder[field] = {name: canonical_milli(amount) for name, amount in amounts.items()}


def _parsed(amount: Any) -> Quantity:
    try:
        return parse_quantity(amount)
    except ValueError as error:
        raise BadQuantity from error

"""Who may use a page that is served on loopback: the holder of an address that works once.

    mooring ui            prints   http://127.0.0.1:41234/#token=…
    the browser           sends the token in the body of a POST, never in an address
    the page              keeps the key that it gets for it, and shows it with every request

Other programs of this machine, other origins in the same browser and old addresses have neither.
The part of an address after # is not sent to servers, and the page removes it at once.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from typing import Final

MAX_KEYS: Final = 16  # browsers at a time
MAX_TOKENS: Final = 16  # addresses that were printed and not used


class Sessions:
    """Tokens that work once, and the keys that were given for them; only hashes are kept."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[bytes, None] = OrderedDict()
        self._keys: OrderedDict[bytes, None] = OrderedDict()

    def new_token(self) -> str:
        """A token that can be exchanged once."""
        return _added(self._tokens, MAX_TOKENS)

    def exchange(self, token: str) -> str | None:
        """The key for a token; None if it is not known, or was exchanged before."""
        found = _found(self._tokens, token)
        if found is None:
            return None
        del self._tokens[found]
        return _added(self._keys, MAX_KEYS)

    def is_valid(self, key: str) -> bool:
        return _found(self._keys, key) is not None


def _added(known: OrderedDict[bytes, None], most: int) -> str:
    secret = secrets.token_urlsafe(32)
    known[_hash(secret)] = None
    if len(known) > most:
        known.popitem(last=False)
    return secret


def _found(known: OrderedDict[bytes, None], secret: str) -> bytes | None:
    asked = _hash(secret)
    return next((one for one in known if hmac.compare_digest(one, asked)), None)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()

"""The grammar of label keys, label values and resource names."""

import re
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)


def is_qualified_name(text: str) -> bool:
    """True for `name` or `domain/name`, with the lengths and characters Kubernetes allows."""
    domain, slash, name = text.rpartition("/")
    if slash and (len(domain) > 253 or _DOMAIN.fullmatch(domain) is None):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """True for what a label may hold: nothing, or up to 63 characters of a name."""
    return not text or (len(text) <= 63 and _NAME.fullmatch(text) is not None)

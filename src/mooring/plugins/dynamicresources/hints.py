"""Whether an event may help a pod that DynamicResources refused."""

from __future__ import annotations

import mooring.framework as fw
from mooring.api.resource import ResourceClaim
from mooring.plugins.dynamicresources.claims import UnusableClaim, claim_names, claims_of
from mooring.plugins.dynamicresources.ledger import Ledger


def may_help(pod: fw.Pod, old: object | None, new: object | None, ledger: Ledger) -> bool:
    """Claims and the pod's own status are looked at; nodes, classes and slices always may help."""
    if isinstance(new, ResourceClaim):
        before = old if isinstance(old, ResourceClaim) else None
        return _claim_helps(pod, before, new) and _has_usable_claims(pod, ledger)
    if isinstance(old, ResourceClaim):
        return old.allocation is not None  # it is gone, and its devices are free
    if isinstance(new, fw.Pod):
        return new.uid == pod.uid and _has_usable_claims(new, ledger)
    return True


def _has_usable_claims(pod: fw.Pod, ledger: Ledger) -> bool:
    try:
        claims_of(pod, ledger)
    except UnusableClaim:
        return False
    return True


def _claim_helps(pod: fw.Pod, old: ResourceClaim | None, new: ResourceClaim) -> bool:
    if old is not None and old.allocation is not None and new.allocation is None:
        return True  # devices have become free
    if new.namespace != pod.namespace or (old is not None and old.status == new.status):
        return False
    try:
        return any(name == new.name for name, _ in claim_names(pod))
    except UnusableClaim:
        return False

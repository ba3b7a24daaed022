"""Older configuration files: from a document of any version to one of v1 that means the same.

Flows in: the plain data of a file. Flows out: plain data in version v1, which the loader decodes
like any other, and notes on what changed or has no counterpart. A setting that v1 can't express is
reported as a problem. The paths of notes and problems are those of the given file.

    v1beta1..3 ─ beta ─┐
    v1alpha1..2 ─ alpha ┼─ profile ─ scores ─▶ v1 document + notes
    Policy ─ policy ────┘
"""

from typing import Any

from mooring.config.legacy import names
from mooring.config.legacy.alpha import FetchPolicy, convert_v1alpha1, convert_v1alpha2
from mooring.config.legacy.beta import convert_beta
from mooring.config.legacy.policy import convert_policy
from mooring.config.legacy.profile import to_profile
from mooring.config.legacy.sections import Document, convert_leader_election
from mooring.config.notes import Findings
from mooring.config.types import API_VERSION, DEFAULT_SCHEDULER_NAME, KIND

__all__ = ["OLD_VERSIONS", "POLICY_VERSIONS", "FetchPolicy", "to_v1", "with_leases"]

_GROUP = API_VERSION.partition("/")[0]
OLD_VERSIONS: tuple[str, ...] = tuple(
    f"{_GROUP}/{version}" for version in ("v1beta3", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1")
)
POLICY_VERSIONS: tuple[str, ...] = ("v1", API_VERSION)

_SPREAD_WEIGHT = 2  # of EvenPodsSpreadPriority when Policy files were last read, in 1.22


def to_v1(
    raw: dict[Any, object], version: str, findings: Findings, fetch: FetchPolicy
) -> Document | None:
    """Convert a document; None when findings hold problems that leave nothing to convert.

    `version` is the part after the slash, or `Policy`.
    """
    if version == "Policy":
        new = _convert_policy_alone(raw, findings)
    elif version == "v1alpha1":
        new = convert_v1alpha1(raw, findings, fetch)
    elif version == "v1alpha2":
        new = convert_v1alpha2(raw, findings)
    else:
        new = convert_beta(raw, version, findings)
    if new is None:
        return None
    if new["profiles"] == [{}]:
        del new["profiles"]
    newer = [name for name in names.NEWER if version != "v1beta3" or name != names.NEWER[0]]
    text = "are newer than the file and stay on: they only act on pods that use their features"
    findings.note("", f"{', '.join(newer)} {text}")
    return {"apiVersion": API_VERSION, "kind": KIND, **new}


def with_leases(raw: dict[Any, object], findings: Findings) -> dict[Any, object]:
    """A v1 document with `resourceLock: leases` instead of a lock that v1 does not have.

    Files that were converted by hand often keep the old lock; its meaning is clear.
    """
    election = raw.get("leaderElection")
    if not isinstance(election, dict):
        return raw
    lock = election.get("resourceLock")
    if not isinstance(lock, str) or lock not in names.LEASE_LOCKS:
        return raw
    kept = {key: value for key, value in election.items() if key == "resourceLock"}
    return {**raw, "leaderElection": {**election, **convert_leader_election(kept, findings)}}


def _convert_policy_alone(raw: dict[Any, object], findings: Findings) -> Document | None:
    chosen = convert_policy(raw, findings, spread_weight=_SPREAD_WEIGHT, hard_affinity=None)
    if chosen is None:
        return None
    profile = to_profile(DEFAULT_SCHEDULER_NAME, chosen.plugins, chosen.args)
    new: Document = {"profiles": [profile]}
    if chosen.extenders:
        new["extenders"] = chosen.extenders
    return new

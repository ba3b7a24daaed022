"""What is the same answer: kube-scheduler's against ours, stage by stage.

Shared by the recorded vectors (`tests/parity`) and the fuzz rig. The rules follow the format of the
vectors: an absent key and an empty one are equal; reasons of nodes are compared as sets, all others
in order; where kube-scheduler takes any of several equal nodes, any choice of them is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.oracle.compare_claims import claim_differences, without_cel

Answer = Mapping[str, Any]


class Accepted(NamedTuple):
    """A difference that we keep: how its sentence looks, and why it is right."""

    pattern: str
    reason: str


# Every entry is explained to users in docs/parity.md.
ACCEPTED: tuple[Accepted, ...] = ()


def differences(expected: Answer, got: Answer) -> list[str]:
    """What differs, the most local first: what a plugin said of a node, then what came of it."""
    found = _compare(expected, got)
    return [line for line in found if not any(re.search(a.pattern, line) for a in ACCEPTED)]


def _compare(expected: Answer, got: Answer) -> Iterator[str]:
    if "error" in expected or "error" in got:
        # Both refused the question; the words are each one's own.
        if not ("error" in expected and "error" in got):
            yield f"error: expected {_brief(expected)}, got {_brief(got)}"
        return
    yield from _statuses("preEnqueue", expected, got)
    yield from _statuses("preFilter", expected, got)
    yield from _plain("preFilter.nodeNames", *_inside("preFilter", "nodeNames", expected, got))
    yield from _node_statuses("filter", expected.get("filter"), got.get("filter"))
    if not _is_unscored(expected):
        yield from _scores(expected.get("scores") or {}, got.get("scores") or {})
    yield from _plain("scoreError", expected.get("scoreError"), got.get("scoreError"))
    yield from _post_filter(expected.get("postFilter"), got.get("postFilter"))
    yield from _plain("feasible", expected.get("feasible"), got.get("feasible"))
    if not _is_unscored(expected):
        yield from _entries("total", expected.get("total"), got.get("total"))
    yield from claim_differences(expected, got)
    yield from _choice("best", expected.get("best"), got.get("best"))
    for key in ("fitError", "fitErrorFinal", "outcome"):
        yield from _plain(key, expected.get(key), got.get(key))


def _is_unscored(expected: Answer) -> bool:
    """Of a single feasible node a failure of scoring is not recorded."""
    return len(expected.get("feasible") or ()) == 1 and not expected.get("total")


def _plain(path: str, expected: Any, got: Any) -> Iterator[str]:
    if isinstance(expected, str) and isinstance(got, str):
        expected, got = without_cel(expected), without_cel(got)
    if expected != got and (expected or got):
        yield f"{path}: expected {_show(expected)}, got {_show(got)}"


def _entries(path: str, expected: Answer | None, got: Answer | None) -> Iterator[str]:
    expected, got = expected or {}, got or {}
    if bool(expected) != bool(got):  # one side did not get there: one line is enough
        yield f"{path}: expected {_some(expected)}, got {_some(got)}"
        return
    for key in sorted(expected.keys() | got.keys()):
        if expected.get(key) != got.get(key):
            yield f"{path}[{key}]: expected {_show(expected.get(key))}, got {_show(got.get(key))}"


def _inside(key: str, field: str, expected: Answer, got: Answer) -> tuple[Any, Any]:
    return (expected.get(key) or {}).get(field), (got.get(key) or {}).get(field)


def _choice(path: str, expected: list[str] | None, got: list[str] | None) -> Iterator[str]:
    """Any of the equals is right, but one must be taken."""
    if bool(expected) != bool(got) or not set(got or ()) <= set(expected or ()):
        yield f"{path}: expected any of {_show(expected)}, got {_show(got)}"


def _status(status: Answer | None, *, ordered: bool) -> tuple[Any, ...] | None:
    if status is None:
        return None
    reasons = [without_cel(reason) for reason in status.get("reasons") or ()]
    return (
        status.get("code"),
        status.get("plugin") or "",
        tuple(reasons if ordered else sorted(reasons)),
        bool(status.get("prefiltered")),
    )


def _statuses(path: str, expected: Answer, got: Answer) -> Iterator[str]:
    said, ours = expected.get(path), got.get(path)
    if _status(said, ordered=True) != _status(ours, ordered=True):
        yield f"{path}: expected {_show_status(said)}, got {_show_status(ours)}"


def _node_statuses(path: str, expected: Answer | None, got: Answer | None) -> Iterator[str]:
    expected, got = expected or {}, got or {}
    for node in sorted(expected.keys() | got.keys()):
        said, ours = expected.get(node), got.get(node)
        if _status(said, ordered=False) != _status(ours, ordered=False):
            yield f"{path}[{node}]: expected {_show_status(said)}, got {_show_status(ours)}"


def _scores(expected: Answer, got: Answer) -> Iterator[str]:
    if bool(expected) != bool(got):
        yield f"scores: expected {_some(expected)}, got {_some(got)}"
        return
    for plugin in sorted(expected.keys() | got.keys()):
        path = f"scores[{plugin}]"
        said, ours = expected.get(plugin), got.get(plugin)
        if said is None or ours is None:
            yield f"{path}: expected {_present(said)}, got {_present(ours)}"
            continue
        yield from _plain(f"{path}.weight", said.get("weight"), ours.get("weight"))
        if bool(said.get("skipped")) != bool(ours.get("skipped")):
            yield f"{path}: expected {_skipped(said)}, got {_skipped(ours)}"
            continue
        yield from _entries(path, said.get("nodes"), ours.get("nodes"))


def _post_filter(expected: Answer | None, got: Answer | None) -> Iterator[str]:
    path = "postFilter"
    if expected is None or got is None:
        if expected is not got:
            yield f"{path}: expected {_show_status(expected)}, got {_show_status(got)}"
        return
    yield from _node_statuses(
        f"{path}.dryRunFailures", expected.get("dryRunFailures"), got.get("dryRunFailures")
    )
    yield from _entries(f"{path}.candidates", expected.get("candidates"), got.get("candidates"))
    yield from _statuses(path, {path: expected}, {path: got})
    yield from _choice(
        f"{path}.nominatedNodes", expected.get("nominatedNodes"), got.get("nominatedNodes")
    )
    yield from _plain(
        f"{path}.clearNominatedNode",
        bool(expected.get("clearNominatedNode")),
        bool(got.get("clearNominatedNode")),
    )
    if len(expected.get("nominatedNodes") or ()) <= 1:
        for key in ("victims", "deleted"):
            yield from _plain(f"{path}.{key}", expected.get(key), got.get(key))
    elif got.get("victims") is not None and len(got.get("nominatedNodes") or ()) == 1:
        # kube-scheduler could have taken this one of the equals: its victims are then known.
        node = got["nominatedNodes"][0]
        candidate = (expected.get("candidates") or {}).get(node) or {}
        victims = sorted(candidate.get("victims") or ())
        yield from _plain(f"{path}.victims", victims, sorted(got["victims"]))


def _show(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_show(entry)}" for key, entry in value.items()) or "nothing"
    return "nothing" if value is None else str(value)


def _show_status(status: Answer | None) -> str:
    if status is None:
        return "nothing"
    words = [status.get("plugin"), status.get("code")]
    if status.get("reasons"):
        words.append(_show(status["reasons"]))
    if status.get("prefiltered"):
        words.append("(prefiltered)")
    return " ".join(str(word) for word in words if word)


def _some(entries: Answer) -> str:
    return ", ".join(sorted(entries)) or "nothing"


def _present(score: Answer | None) -> str:
    return "not enabled" if score is None else "enabled"


def _skipped(score: Answer) -> str:
    return "skipped" if score.get("skipped") else "scores"


def _brief(answer: Answer) -> str:
    return str(answer.get("error") or answer.get("outcome") or "nothing").split("\n")[0]

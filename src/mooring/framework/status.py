"""The answer of a plugin: a code, the reasons, and the plugin.

A refusal is a value with reasons; an exception is a bug or an outage. Codes have kube-scheduler's
numbers and names, as in metrics and Events.
"""

from __future__ import annotations

import enum
from typing import Final, NoReturn

import msgspec

from mooring.observe.texts import cut_all


class Code(enum.IntEnum):
    """What a status means to the scheduler."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """The code as metrics, logs and kube-scheduler spell it."""
        return _LABELS[self]


_LABELS = (
    "Success",
    "Error",
    "Unschedulable",
    "UnschedulableAndUnresolvable",
    "Wait",
    "Skip",
    "Pending",
)
# Module names, because looking a member up in its enum is slow.
_SUCCESS: Final = Code.SUCCESS
_SKIP: Final = Code.SKIP
_REJECTED: Final = frozenset(
    {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}
)


class Status(msgspec.Struct, frozen=True):
    """A code with its reasons.

    The runner fills `plugin`; plugins leave it empty. `cause` is the exception behind it, if any.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    cause: BaseException | None = None

    def __post_init__(self) -> None:
        # Checked here, so that the traceback shows the line of the plugin.
        if not isinstance(self.code, Code):
            raise TypeError(f"the code of a Status must be a Code, not {self.code!r}")
        is_right = isinstance(self.reasons, tuple)
        for reason in self.reasons if is_right else ():
            is_right = is_right and isinstance(reason, str)
        if not is_right:
            raise TypeError(f"the reasons of a Status must be a tuple of str, not {self.reasons!r}")

    @classmethod
    def unschedulable(cls, *reasons: str) -> Status:
        """A refusal that evictions may change."""
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Status:
        """A refusal that evictions can't change."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def pending(cls, *reasons: str) -> Status:
        """A refusal until an external event occurs; then the pod is retried without backoff."""
        return cls(Code.PENDING, reasons)

    @classmethod
    def error(cls, *reasons: str, cause: BaseException | None = None) -> Status:
        """A failure; the pod is retried after a backoff."""
        return cls(Code.ERROR, reasons, "", cause)

    @property
    def ok(self) -> bool:
        return self.code is _SUCCESS

    @property
    def rejected(self) -> bool:
        return self.code in _REJECTED

    @property
    def skipped(self) -> bool:
        return self.code is _SKIP

    @property
    def message(self) -> str:
        """All reasons in one line, as events and conditions show them."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same status with the name of a plugin and at most 4 KiB of reasons."""
        reasons = cut_all(self.reasons)
        if reasons is self.reasons and type(self.plugin) is str and self.plugin == plugin:
            return self
        return Status(self.code, reasons, plugin, self.cause)

    def __bool__(self) -> NoReturn:
        raise TypeError("a Status has no truth value: ask status.ok or status.rejected")


OK = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)

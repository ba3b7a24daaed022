"""Log lines as Kubernetes components write them: klog's text, or one JSON object per line.

    I1115 22:04:05.123456    1234 attempts.py:256] "Successfully bound pod to node" pod="default/a"
    {"ts":1794780245123.456,"caller":"attempts.py:256","msg":"Successfully bound…","v":2,"pod":…}

Code logs with the standard library: a constant message, and fields in `extra`. `--v` sets how much
is shown. ERROR and WARNING are always shown; an INFO line counts as v2, a DEBUG line as v4 and a
TRACE line as v10 unless its `extra` has `{"v": …}`. Text from the cluster can't break out of its
line: newlines and control characters are escaped, and a `TextBlock` is shown as indented lines.

In the rooms that run for every pod, INFO and DEBUG are switched off at the logger below v2 and v4,
where they cost least. There `{"v": 0}` has no effect; a WARNING is always shown.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import select
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Literal, TextIO

from mooring.observe import texts

Format = Literal["text", "json"]

TRACE: Final = logging.DEBUG // 2
"""The level of lines for every node and plugin of a decision."""

_INFO_COUNTS_AS: Final = 2
_DEBUG_COUNTS_AS: Final = 4
_TRACE_COUNTS_AS: Final = 10
_PER_POD: Final = ("cache", "framework", "plugins", "preemption", "queue", "runtime", "scheduler")
_LIBRARIES: Final = ("aiohttp", "asyncio")  # below WARNING they log only about themselves
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "v"}
_LONGEST_BACKLOG: Final = 1024 * 1024  # bytes of lines that wait for a reader
_ATOMIC: Final = select.PIPE_BUF  # bytes that a pipe with room takes without waiting
_ON_ERROR: Final = "backslashreplace"
_RESERVED: Final = frozenset({"ts", "caller", "severity", "stacktrace"})


class TextBlock(str):
    """A value of several lines, which the text format shows as such, each indented by a tab."""

    __slots__ = ()


def configure(verbosity: int, format: Format, stream: TextIO) -> logging.Handler:
    """Send all log lines to `stream`; a second call replaces the first."""
    root = logging.getLogger()
    for known in [handler for handler in root.handlers if isinstance(handler, _Handler)]:
        root.removeHandler(known)
    handler = _Handler(stream)
    handler.setFormatter(JsonLines() if format == "json" else TextLines())
    handler.addFilter(lambda record: verbosity_of(record) <= verbosity)
    root.addHandler(handler)

    level = _level(verbosity)
    root.setLevel(level)
    # Elsewhere a line may have `{"v": 0}`, so all lines reach the handler.
    logging.getLogger("mooring").setLevel(min(level, logging.INFO))
    for room in _PER_POD:
        logging.getLogger(f"mooring.{room}").setLevel(level)
    for library in _LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)
    return handler


def verbosity_of(record: logging.LogRecord) -> int:
    """The least `--v` that shows a record."""
    if record.levelno >= logging.WARNING:
        return 0
    asked = getattr(record, "v", None)
    if isinstance(asked, int):
        return asked
    if record.levelno >= logging.INFO:
        return _INFO_COUNTS_AS
    return _DEBUG_COUNTS_AS if record.levelno >= logging.DEBUG else _TRACE_COUNTS_AS


def _level(verbosity: int) -> int:
    if verbosity >= _TRACE_COUNTS_AS:
        return TRACE
    if verbosity >= _DEBUG_COUNTS_AS:
        return logging.DEBUG
    return logging.INFO if verbosity >= _INFO_COUNTS_AS else logging.WARNING


def is_behind() -> bool:
    """Whether so many lines wait for a reader that further ones may soon be dropped."""
    handlers = logging.getLogger().handlers
    return any(isinstance(one, _Handler) and one.is_behind for one in handlers)


class _Handler(logging.StreamHandler[TextIO]):
    """Writes lines without ever waiting for the reader of a pipe, a socket or a terminal.

    Lines that can't be written at once are left to a thread that ends when all are written. Lines
    beyond a backlog of 1 MiB are dropped and counted.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._backlog: deque[bytes] = deque()  # changed under the lock of the handler
        self._waiting = 0  # bytes of the backlog
        self._dropped = 0  # lines
        self._writer: threading.Thread | None = None
        try:
            self._file: int | None = stream.fileno()
        except (OSError, ValueError):  # in memory
            self._file = None
        else:
            self._poll = select.poll()
            self._poll.register(self._file, select.POLLOUT)

    @property
    def is_behind(self) -> bool:
        return self._waiting > _LONGEST_BACKLOG // 2

    def emit(self, record: logging.LogRecord) -> None:
        if self._file is None:
            super().emit(record)
            return
        try:
            line = self._encoded(record)
        except Exception:  # as the base class does
            self.handleError(record)
            return
        if not self._backlog:
            line = self._write(self._file, line)
        if line and self._waiting + len(line) > _LONGEST_BACKLOG:
            self._dropped += 1
        elif line:
            self._backlog.append(line)
            self._waiting += len(line)
            if self._writer is None:
                self._writer = threading.Thread(target=self._drain, args=(self._file,), daemon=True)
                self._writer.start()

    def _encoded(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode(self.stream.encoding or "utf-8", _ON_ERROR)

    def _write(self, file: int, line: bytes) -> bytes:
        """Write as much as possible without waiting; returns the rest."""
        try:
            while line and self._poll.poll(0):
                line = line[os.write(file, line[:_ATOMIC]) :]
        except OSError:  # closed, or a full disk: there is no other place to report it
            return b""
        return line

    def _drain(self, file: int) -> None:
        while True:
            with self.lock or contextlib.nullcontext():
                if not self._backlog:
                    self._writer = None
                    return
                line = self._backlog[0]
            try:
                rest = line[os.write(file, line[:_ATOMIC]) :]
            except OSError:
                rest = b""
            with self.lock or contextlib.nullcontext():
                self._waiting -= len(line) - len(rest)
                if rest:
                    self._backlog[0] = rest
                    continue
                self._backlog.popleft()
                if self._dropped and not self._backlog:
                    text = "log lines were dropped, because nothing read them"
                    fields = {"levelno": logging.WARNING, "filename": "log.py", "msg": text}
                    record = logging.makeLogRecord({**fields, "count": self._dropped})
                    self._dropped = 0
                    self._backlog.append(self._encoded(record))
                    self._waiting += len(self._backlog[0])


class TextLines(logging.Formatter):
    """klog's text."""

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelno
        letter = "E" if level >= logging.ERROR else "W" if level >= logging.WARNING else "I"
        moment = time.localtime(record.created)
        micro = int(record.created % 1 * 1e6)
        when = f"{moment.tm_mon:02}{moment.tm_mday:02} {time.strftime('%H:%M:%S', moment)}"
        head = f"{letter}{when}.{micro:06} {os.getpid():>7} {record.filename}:{record.lineno}]"
        fields = "".join(f" {key}={_shown(value)}" for key, value in _fields(record))
        lines = [f"{head} {_quoted(_message(record))}{fields}"]
        # Indented, so that no line of a traceback looks like a log line.
        lines += [f"\t{_escaped(line)}" for line in _stacktrace(record).splitlines()]
        return "\n".join(lines)


class JsonLines(logging.Formatter):
    """One object per line, with the keys of `--logging-format=json`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 4),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": _message(record),
        }
        if record.levelno < logging.ERROR:
            line["v"] = verbosity_of(record)
        if record.levelno >= logging.WARNING:
            line["severity"] = "error" if record.levelno >= logging.ERROR else "warning"
        line |= {key: _plain(value) for key, value in _fields(record)}
        stacktrace = _stacktrace(record)
        if stacktrace:
            line["stacktrace"] = stacktrace
        # ASCII only: control sequences of terminals are escaped.
        return json.dumps(line, separators=(",", ":"))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # the arguments do not fit the text: log both as they are
        return f"{record.msg} {texts.text_of(record.args)}"


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """The fields of `extra`; an error is always called `err`."""
    has_error = False
    for key, value in vars(record).items():
        if key in _OWN:
            continue
        if key in ("error", "err"):
            has_error = True
            key = "err"
        yield (f"{key}_" if key in _RESERVED else key), value
    if not has_error and record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        yield "err", texts.named(error)


def _stacktrace(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return ""
    shown = texts.safe_copy(error)
    return _PLAIN.formatException((type(shown), shown, shown.__traceback__))


_PLAIN: Final = logging.Formatter()


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return texts.text_of(value)


def _shown(value: Any) -> str:
    if isinstance(value, TextBlock) and value:
        lines = "".join(f"\t{_escaped(line)}\n" for line in value.rstrip("\n").split("\n"))
        return f"<\n{lines} >"
    plain = _plain(value)
    return _quoted(plain) if isinstance(plain, str) else json.dumps(plain)


def _quoted(text: str) -> str:
    return f'"{_escaped(text, quotes=True)}"'


def _escaped(text: str, *, quotes: bool = False) -> str:
    """The text with unprintable characters escaped; with `quotes`, quotation marks as well."""
    if text.isprintable() and not (quotes and ('"' in text or "\\" in text)):
        return text
    return "".join(
        char if char.isprintable() and not (quotes and char in '"\\') else _escape(char)
        for char in text
    )


def _escape(char: str) -> str:
    return r"\"" if char == '"' else repr(char)[1:-1]

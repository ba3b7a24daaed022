"""Output that cannot be written: a reader that has gone, a full disk, a terminal without UTF-8."""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Iterator
from typing import Final, TextIO

CODE_OF_BROKEN_PIPE: Final = 128 + signal.SIGPIPE  # what a shell reports for other tools
_PLAIN: Final = "plain"
_SPELLINGS: Final = {
    "…": "...",
    "─": "-",
    "│": "|",
    "█": "#",
    "·": "-",
    "●": "*",
}
_UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def use_plain_spellings() -> None:
    """Where a stream can't carry a character, write a similar one instead of failing."""
    codecs.register_error(_PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        encoding = getattr(stream, "encoding", None) or "utf-8"
        if codecs.lookup(encoding).name != "utf-8" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_PLAIN)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(_SPELLINGS.get(character, "?") for character in unknown), error.end


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Around a command: raises SystemExit, quietly or with one line, if output can't be written."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        raise SystemExit(CODE_OF_BROKEN_PIPE) from None
    except SystemExit as ending:
        if isinstance(ending.__context__, BrokenPipeError):  # rich ends the process by itself
            raise SystemExit(CODE_OF_BROKEN_PIPE) from None
        raise
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _silence(sys.stdout)
        print(f"mooring: can't write the output: {error.strerror}", file=sys.stderr)
        raise SystemExit(1) from None


def _silence(stream: TextIO) -> None:
    """Drop what is still to be written: the interpreter would try it again at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

"""Failures of a connection, with plain words in place of codes and acronyms."""

from __future__ import annotations

import os
import re
import socket
import ssl


class Broken(Exception):
    """The connection failed; the message says why in plain words."""

    def __init__(
        self,
        words: str,
        *,
        expired: bool = False,
        untrusted: bool = False,
        too_long: bool = False,
    ) -> None:
        super().__init__(words)
        self.expired: bool = expired  # it took too long
        self.untrusted: bool = untrusted  # one side did not accept the other's certificate
        self.too_long: bool = too_long  # the answer has more bytes than it may have


def describe_error(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message.rstrip('.')}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).replace("_", " ").lower()
        return f"TLS failed: {reason}"
    if isinstance(error, socket.gaierror):
        return f"the name cannot be resolved: {(error.strerror or str(error)).lower()}"
    if isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError):
        return "connection reset by the server"
    if isinstance(error, OSError):
        return _os_words(error)
    return str(error) or type(error).__name__


def _os_words(error: OSError) -> str:
    # asyncio reports a failed connect in its own words, and several at once in one string.
    codes = [error.errno] if error.errno is not None else []
    codes = codes or [int(code) for code in re.findall(r"\[Errno (\d+)\]", str(error))]
    if not codes:
        return str(error) or type(error).__name__
    return ", ".join(dict.fromkeys(os.strerror(code).lower() for code in codes))


def is_certificate_error(error: BaseException) -> bool:
    """Whether TLS failed over a certificate, theirs or ours."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    alerts = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
    return "ALERT" in reason and any(alert in reason for alert in alerts)

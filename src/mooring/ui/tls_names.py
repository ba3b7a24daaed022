"""The values of `--tls-min-version` and `--tls-cipher-suites`, from Go's names to OpenSSL's."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from typing import Final

from mooring.errors import Problem, UsageError

_VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

# Suites of TLS 1.2; those of 1.3 are always enabled, as in Go.
_SUITES: Final[Mapping[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
_SUITES_OF_13: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)


def minimum_version(name: str) -> ssl.TLSVersion:
    """The minimum version; TLS 1.2 if the name is empty."""
    if not name:
        return ssl.TLSVersion.TLSv1_2
    found = _VERSIONS.get(name)
    if found is None:
        known = ", ".join(_VERSIONS)
        text = f'unknown tls version "{name}", expected one of {known}'
        raise UsageError([Problem("--tls-min-version", text)])
    return found


def openssl_ciphers(names: Iterable[str]) -> str | None:
    """OpenSSL's names of the TLS 1.2 suites; "" if none is left, None for its defaults."""
    given = list(names)
    unknown = [name for name in given if name not in _SUITES and name not in _SUITES_OF_13]
    if unknown:
        known = ", ".join(sorted(_SUITES_OF_13 | _SUITES.keys()))
        raise UsageError(
            Problem(
                "--tls-cipher-suites",
                f"Cipher suite {name} not supported or doesn't exist, expected some of {known}",
            )
            for name in unknown
        )
    if not given:
        return None
    return ":".join(_SUITES[name] for name in given if name in _SUITES)

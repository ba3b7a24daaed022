"""Quantities, versions, addresses and URLs, as Kubernetes adds them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from mooring.api.quantity import INT64_MAX, INT64_MIN, Quantity, parse_quantity
from mooring.plugins.dynamicresources.cel.library.overloads import add
from mooring.plugins.dynamicresources.cel.values import (
    CIDR,
    IP,
    CelError,
    Semver,
    Url,
    normalize_semver,
    parse_semver,
)

_NANOS: Final = 10**9

# --- quantities and versions ----------------------------------------------------------------------


def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except ValueError as error:
        raise CelError(f"quantities must match the regular expression: {error}") from None


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


def _is_integer(quantity: Quantity) -> bool:
    whole, rest = divmod(quantity.nanos, _NANOS)
    return not rest and INT64_MIN <= whole <= INT64_MAX


def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise CelError("cannot convert value to integer")
    return quantity.nanos // _NANOS


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _semver(text: str, normalize: bool = False) -> Semver:
    try:
        return parse_semver(normalize_semver(text) if normalize else text)
    except ValueError as error:
        raise CelError(str(error)) from None


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except CelError:
        return False
    return True


def _compare_semver(a: Semver, b: Semver) -> int:
    return int(a.precedence > b.precedence) - int(a.precedence < b.precedence)


add("quantity", _quantity, "(string) -> Quantity")
add("isQuantity", _is_quantity, "(string) -> bool")
add("sign", lambda a: _sign(a.nanos), "(Quantity) -> int")
add("isGreaterThan", lambda a, b: a.nanos > b.nanos, "Quantity.(Quantity) -> bool")
add("isLessThan", lambda a, b: a.nanos < b.nanos, "Quantity.(Quantity) -> bool")
add("compareTo", lambda a, b: _sign(a.nanos - b.nanos), "Quantity.(Quantity) -> int")
add("asApproximateFloat", lambda a: a.nanos / _NANOS, "Quantity.() -> double")
add("asInteger", _as_integer, "Quantity.() -> int")
add("isInteger", _is_integer, "Quantity.() -> bool")
add("add", lambda a, b: a + b, "Quantity.(Quantity) -> Quantity")
add("add", lambda a, b: Quantity(a.nanos + b * _NANOS, a.format), "Quantity.(int) -> Quantity")
add("sub", lambda a, b: a - b, "Quantity.(Quantity) -> Quantity")
add("sub", lambda a, b: Quantity(a.nanos - b * _NANOS, a.format), "Quantity.(int) -> Quantity")
add("semver", _semver, "(string) -> Semver", "(string, bool) -> Semver")
add("isSemver", _is_semver, "(string) -> bool", "(string, bool) -> bool")
add("isGreaterThan", lambda a, b: _compare_semver(a, b) > 0, "Semver.(Semver) -> bool")
add("isLessThan", lambda a, b: _compare_semver(a, b) < 0, "Semver.(Semver) -> bool")
add("compareTo", _compare_semver, "Semver.(Semver) -> int")
add("major", lambda a: a.major, "Semver.() -> int")
add("minor", lambda a: a.minor, "Semver.() -> int")
add("patch", lambda a: a.patch, "Semver.() -> int")


# --- addresses and URLs ---------------------------------------------------------------------------


def _ip(text: str) -> IP:
    try:
        found = ipaddress.ip_address(text)
    except ValueError as error:
        problem = f'IP Address "{text}" parse error during conversion from string: {error}'
        raise CelError(problem) from None
    if found.version == 6 and found.ipv4_mapped is not None:
        raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    if "%" in text:
        raise CelError(f'IP address "{text}" with zone value is not allowed')
    return found


def _cidr(text: str) -> CIDR:
    address, slash, length = text.partition("/")
    _ip(address)
    try:
        if not slash or not length.isdigit():
            raise ValueError("expected address/length")
        return ipaddress.ip_interface(text)
    except ValueError as error:
        problem = f"network address parse error during conversion from string: {error}"
        raise CelError(problem) from None


def _succeeds(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def succeeds(text: str) -> bool:
        try:
            parse(text)
        except CelError:
            return False
        return True

    return succeeds


def _holds_ip(cidr: CIDR, ip: IP | str) -> bool:
    address = _ip(ip) if isinstance(ip, str) else ip
    return address.version == cidr.version and address in cidr.network


def _holds_cidr(cidr: CIDR, other: CIDR | str) -> bool:
    inner = _cidr(other) if isinstance(other, str) else other
    is_longer = inner.network.prefixlen >= cidr.network.prefixlen
    return is_longer and _holds_ip(cidr, inner.ip)


def _is_global_unicast(ip: IP) -> bool:
    is_broadcast = ip.version == 4 and int(ip) == 2**32 - 1
    special = ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local
    return not (special or is_broadcast)


def _is_link_local_multicast(ip: IP) -> bool:
    if ip.version == 4:
        return ip in ipaddress.ip_network("224.0.0.0/24")
    return ip.is_multicast and (int(ip) >> 112) & 0xF == 2


def _url(text: str) -> Url:
    parts = urlsplit(text)
    if not (parts.scheme and (parts.netloc or parts.path)) and not text.startswith("/"):
        raise CelError(f"URL parse error during conversion from string: {text!r}")
    return Url(text, parts)


add("ip", _ip, "(string) -> IP")
add("ip", lambda cidr: cidr.ip, "CIDR.() -> IP")
add("isIP", _succeeds(_ip), "(string) -> bool")
add("ip.isCanonical", lambda text: str(_ip(text)) == text, "(string) -> bool")
add("family", lambda ip: ip.version, "IP.() -> int")
add("isUnspecified", lambda ip: ip.is_unspecified, "IP.() -> bool")
add("isLoopback", lambda ip: ip.is_loopback, "IP.() -> bool")
add("isLinkLocalMulticast", _is_link_local_multicast, "IP.() -> bool")
add("isLinkLocalUnicast", lambda ip: ip.is_link_local, "IP.() -> bool")
add("isGlobalUnicast", _is_global_unicast, "IP.() -> bool")
add("string", str, "(IP) -> string", "(CIDR) -> string")
add("cidr", _cidr, "(string) -> CIDR")
add("isCIDR", _succeeds(_cidr), "(string) -> bool")
add("containsIP", _holds_ip, "CIDR.(string) -> bool", "CIDR.(IP) -> bool")
add("containsCIDR", _holds_cidr, "CIDR.(string) -> bool", "CIDR.(CIDR) -> bool")
add("prefixLength", lambda cidr: cidr.network.prefixlen, "CIDR.() -> int")
add("masked", lambda cidr: ipaddress.ip_interface(cidr.network), "CIDR.() -> CIDR")
add("url", _url, "(string) -> URL")
add("isURL", _succeeds(_url), "(string) -> bool")
add("getScheme", lambda url: url.parts.scheme, "URL.() -> string")
add("getHost", lambda url: url.parts.netloc.rpartition("@")[2], "URL.() -> string")
add("getHostname", lambda url: url.parts.hostname or "", "URL.() -> string")
add(
    "getPort",
    lambda url: url.parts.netloc.rpartition(":")[2] if url.parts.port else "",
    "URL.() -> string",
)
add("getEscapedPath", lambda url: url.parts.path, "URL.() -> string")
add(
    "getQuery",
    lambda url: parse_qs(url.parts.query, keep_blank_values=True),
    "URL.() -> map(string, list(string))",
)

"""The two tables of HPACK: header fields that are known beforehand, and the Huffman code.

Both are facts of RFC 7541 (appendices A and B). The code is canonical, so that the length of each
symbol's code says it all; it is walked a byte at a time, and each step is worked out once.
"""

from __future__ import annotations

from typing import Final

STATIC: Final[tuple[tuple[str, str], ...]] = (
    ("", ""),  # counted from 1
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
)

_SYMBOLS: Final[tuple[tuple[int, bytes], ...]] = (  # bits, and the bytes whose code has so many
    (5, b"012aceiost"),
    (6, b" %-./3456789=A_bdfghlmnpru"),
    (7, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, b"&*,;XZ"),
    (10, b'!"()?'),
    (11, b"'+|"),
    (12, b"#>"),
    (13, b"\x00$@[]~"),
    (14, b"^}"),
    (15, b"<`{"),
    (19, b"\\\xc3\xd0"),
    (20, b"\x80\x82\x83\xa2\xb8\xc2\xe0\xe2"),
    (21, b"\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\xe6"),
    (
        22,
        b"\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4"
        b"\xc6\xe4\xe8\xe9",
    ),
    (
        23,
        b"\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4"
        b"\xb6\xb7\xbc\xbf\xc5\xe7\xef",
    ),
    (24, b"\t\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed"),
    (25, b"\xc7\xcf\xea\xeb"),
    (26, b"\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\xf3\xff"),
    (27, b"\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe"),
    (
        28,
        b"\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x17\x18\x19\x1a\x1b"
        b"\x1c\x1d\x1e\x1f\x7f\xdc\xf9",
    ),
    (30, b"\n\r\x16"),  # and the end of the string, which may not occur in one
)


class _Node:
    """A place between two symbols, or within the code of one."""

    __slots__ = ("branches", "is_end", "steps")

    def __init__(self) -> None:
        self.branches: list[_Node | str | None] = [None, None]  # None: the end of the string
        self.is_end: bool = False  # a string may end here, padded with ones
        self.steps: list[tuple[str, _Node] | None] = [None] * 256

    def step(self, byte: int) -> tuple[str, _Node]:
        """What a byte spells from here, and where it leads. Raises `ValueError`."""
        node, text = self, ""
        for shift in range(7, -1, -1):
            found = node.branches[byte >> shift & 1]
            if found is None:
                raise ValueError("a Huffman code spells the end of the string")
            if isinstance(found, str):
                text += found
                found = _ROOT
            node = found
        self.steps[byte] = (text, node)
        return text, node


def _grow() -> _Node:
    root = _Node()
    code = bits = 0
    for length, symbols in _SYMBOLS:
        for symbol in symbols:
            code <<= length - bits
            bits = length
            node = root
            for shift in range(length - 1, 0, -1):
                branch = code >> shift & 1
                found = node.branches[branch]
                if not isinstance(found, _Node):
                    found = node.branches[branch] = _Node()
                node = found
            node.branches[code & 1] = chr(symbol)
            code += 1
    node = root
    for _ in range(8):  # padding is shorter than a byte
        node.is_end = True
        following = node.branches[1]
        assert isinstance(following, _Node)
        node = following
    return root


_ROOT: Final = _grow()


def unpacked(data: bytes) -> str:
    """A string out of its Huffman code, a character for each byte. Raises `ValueError`."""
    node = _ROOT
    found = ""
    for byte in data:
        text, node = node.steps[byte] or node.step(byte)
        found += text
    if not node.is_end:
        raise ValueError("a Huffman code does not end with its padding")
    return found

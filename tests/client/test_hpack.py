"""HPACK: we read what another implementation writes, and it reads what we write."""

from __future__ import annotations

import hpack
import hpack.huffman
import hpack.huffman_constants
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.client._hpack import (
    CONTENT_LENGTH,
    PATH,
    Decoder,
    Encoder,
    Field,
    Garbled,
    literal,
)
from mooring.client._hpack_tables import STATIC, unpacked

LIMIT = 1 << 20  # bytes

values = st.text(st.characters(min_codepoint=1, max_codepoint=255, exclude_characters="\r\n"))
names = st.sampled_from([name for name, _ in STATIC[1:]]) | st.from_regex(
    r"[a-z0-9-]{1,30}", fullmatch=True
)
# Few, so that they come again; long, so that the table has to drop them.
fields = st.tuples(names, values) | st.builds(
    lambda at, length: (f"x-{at}", f"{at}" * length), st.integers(0, 9), st.integers(0, 600)
)
blocks = st.lists(st.lists(fields, max_size=12), max_size=12)
sizes = st.none() | st.integers(0, 4096)


def seen(block: bytes, decoder: Decoder) -> list[Field]:
    return [(name, value) for name, value, _ in decoder.decode(block)]


def theirs(decoder: hpack.Decoder, block: bytes) -> list[Field]:
    found = decoder.decode(block, raw=True)
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in found]


@given(blocks, st.lists(sizes, max_size=12), st.booleans(), st.booleans())
def test_reads_what_others_write(
    lists: list[list[Field]], resizes: list[int | None], packed: bool, secret: bool
) -> None:
    encoder, decoder = hpack.Encoder(), Decoder(LIMIT)
    for at, wanted in enumerate(lists):
        size = resizes[at] if at < len(resizes) else None
        if size is not None:
            encoder.header_table_size = size
        raw = [(name.encode("latin-1"), value.encode("latin-1"), secret) for name, value in wanted]
        assert seen(encoder.encode(raw, huffman=packed), decoder) == wanted


@given(blocks, st.lists(sizes, max_size=12))
def test_writes_what_others_read(lists: list[list[Field]], resizes: list[int | None]) -> None:
    encoder, decoder = Encoder(), hpack.Decoder(LIMIT)
    for at, wanted in enumerate(lists):
        size = resizes[at] if at < len(resizes) else None
        if size is not None:
            encoder.shrink(size)
        version = encoder.version
        block = encoder.encode(wanted)
        assert theirs(decoder, block) == wanted
        if encoder.version == version:
            assert theirs(decoder, block) == wanted  # the same bytes say the same again
            assert encoder.encode(wanted) == block


@given(blocks)
def test_writes_what_it_reads_itself(lists: list[list[Field]]) -> None:
    encoder, decoder = Encoder(), Decoder(LIMIT)
    for wanted in lists:
        assert seen(encoder.encode(wanted), decoder) == wanted


@given(st.binary(max_size=300), st.binary(max_size=20))
def test_writes_what_is_not_to_be_remembered(path: bytes, length: bytes) -> None:
    block = literal(PATH, path) + literal(CONTENT_LENGTH, length)
    wanted = [(b":path", path), (b"content-length", length)]
    assert list(hpack.Decoder().decode(block, raw=True)) == wanted


def test_fields_that_come_again_cost_a_byte_each() -> None:
    encoder = Encoder()
    wanted = [
        (":method", "POST"),
        ("user-agent", "mooring"),
        ("authorization", "Bearer " + "x" * 900),
    ]
    assert len(encoder.encode(wanted)) > 900
    assert len(encoder.encode(wanted)) == 3


def test_a_field_that_would_fill_the_table_is_not_remembered() -> None:
    encoder = Encoder()
    known = [("user-agent", "mooring")]
    encoder.encode(known)
    for _ in range(3):
        assert len(encoder.encode([("authorization", "x" * 3000)])) > 3000
    assert len(encoder.encode(known)) == 1


# --- Huffman -------------------------------------------------------------------------------------

packer = hpack.huffman.HuffmanEncoder(
    hpack.huffman_constants.REQUEST_CODES, hpack.huffman_constants.REQUEST_CODES_LENGTH
)


@given(st.binary())
def test_unpacks_any_string(data: bytes) -> None:
    assert unpacked(packer.encode(data)) == data.decode("latin-1")


def test_unpacks_every_byte() -> None:
    for byte in range(256):
        assert unpacked(packer.encode(bytes([byte]))) == chr(byte)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",  # the end of the string
        b"\x00",  # '0', padded with zeros
        b"\x1f\xff",  # 'a', and more padding than a byte
    ],
)
def test_refuses_codes_that_do_not_end_well(data: bytes) -> None:
    with pytest.raises(ValueError, match="Huffman"):
        unpacked(data)


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (b"\x80", "field 0"),
        (b"\xbe", "names a field which there is not"),
        (b"\xff\xff\xff\xff\xff\xff", "too long"),
        (b"\x7e\x01a", "names a field which there is not"),
        (b"\x40", "cut off"),
        (b"\x40\x05abc", "middle of a string"),
        (b"\x40\x01A\x01b", "no name for a header"),
        (b"\x40\x00\x01b", "no name for a header"),
        (b"\x40\x01a\x01\n", "line break"),
        (b"\x40\x01a\x81\x00", "Huffman"),
        (b"\x3f\xe2\x1f", "size of the table"),
        (b"\x82\x20", "size of the table"),
        (b"\x40\x01a\x7f\x80\x80\x80\x80", "too long"),
    ],
)
def test_says_what_is_wrong_with_a_block(block: bytes, said: str) -> None:
    with pytest.raises(Garbled, match=said):
        Decoder(LIMIT).decode(block)


def test_refuses_a_list_that_is_longer_than_it_may_be() -> None:
    decoder = Decoder(10_000)
    decoder.decode(Encoder().encode([("a", "x" * 2000)]))
    decoder.decode(b"\xbe" * 4)
    with pytest.raises(Garbled, match="longer than 10000 bytes"):
        decoder.decode(b"\xbe" * 5)


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_are_a_block_or_garbled(found: list[bytes]) -> None:
    decoder = Decoder(LIMIT)
    for block in found:
        try:
            decoder.decode(block)
        except Garbled:
            return

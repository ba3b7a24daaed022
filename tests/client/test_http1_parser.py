"""Answers in HTTP/1.1: what they say, however they are cut, and what is none."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.client._http1 import MAX_HEAD, MAX_LINE, Malformed, ResponseParser, decoded


def parse(data: bytes, *, method: str = "GET", closes: bool = False) -> ResponseParser:
    parser = ResponseParser(method)
    parser.feed(data)
    if closes:
        parser.eof()
    return parser


def complaint(data: bytes, *, closes: bool = False) -> str:
    with pytest.raises(Malformed) as found:
        parse(data, closes=closes)
    return str(found.value)


# --- what answers say --------------------------------------------------------------------------


def test_reads_status_headers_and_a_counted_body() -> None:
    parser = parse(b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nX-Two:  b \r\n\r\nhello")
    assert parser.done
    assert parser.keep_alive
    assert (parser.status, parser.take()) == (201, b"hello")
    assert parser.headers == {"content-length": "5", "x-two": "b"}


def test_needs_no_reason_phrase() -> None:
    assert parse(b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n").status == 200


def test_joins_headers_that_come_twice() -> None:
    parser = parse(b"HTTP/1.1 204 No\r\nWarning: a\r\nwarning: b\r\n\r\n")
    assert parser.headers["warning"] == "a, b"


def test_reads_chunks_with_extensions_and_trailers() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
    parser = parse(head + b'3;a=b;c="d"\r\nabc\r\n00A \r\n0123456789\r\n0;x\r\nEtag: 1\r\n\r\n')
    assert parser.done
    assert parser.keep_alive
    assert parser.take() == b"abc0123456789"
    assert "etag" not in parser.headers


@pytest.mark.parametrize("status", [204, 304])
def test_expects_no_body_where_there_is_none(status: int) -> None:
    parser = parse(f"HTTP/1.1 {status} X\r\nContent-Length: 7\r\n\r\n".encode())
    assert parser.done
    assert parser.take() == b""


@pytest.mark.parametrize("method", ["HEAD", "CONNECT"])
def test_expects_no_body_where_none_was_asked_for(method: str) -> None:
    assert parse(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", method=method).done


def test_skips_interim_answers() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"
    parser = parse(interim + b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
    assert (parser.status, parser.take()) == (200, b"x")
    assert "link" not in parser.headers


def test_reads_to_the_end_without_a_length() -> None:
    parser = parse(b"HTTP/1.1 200 OK\r\n\r\nab", closes=True)
    assert parser.done
    assert not parser.keep_alive
    assert parser.take() == b"ab"


def test_does_not_take_a_torn_connection_for_the_end() -> None:
    parser = parse(b"HTTP/1.1 200 OK\r\n\r\nab")
    with pytest.raises(Malformed, match="in the middle"):
        parser.eof(clean=False)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nConnection: Close\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: foo, close\r\n",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n",  # and a length: whom to believe?
    ],
)
def test_knows_when_a_connection_is_to_be_given_up(head: bytes) -> None:
    assert not parse(head + b"Content-Length: 1\r\n\r\n").keep_alive


def test_notices_what_does_not_belong_to_the_answer() -> None:
    assert parse(b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\n").surplus
    assert not parse(b"HTTP/1.1 204 No\r\n\r\n").surplus


def test_takes_a_length_that_is_said_twice_alike() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"
    assert parse(head).take() == b"x"


# --- what is no answer -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n", "'SSH-2.0-OpenSSH_9\\r\\n', which is not HTTP/1.1"),
        (b"\x15\x03\x01\x00\x02\x02", "which is not HTTP/1.1"),
        (b"HTTP/2 200 OK\r\n\r\n", "which is not HTTP/1.1"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "which is not HTTP/1.1"),
        (b"HTTP/1.1 20\xb2 OK\r\n\r\n", "which is not HTTP/1.1"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "switches to another protocol"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "'no colon' in the answer is no name"),
        (b"HTTP/1.1 200 OK\r\nnocolon\r\n\r\n", "without a colon: 'nocolon'"),
        (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "'A ' in the answer is no name"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n folded: c\r\n\r\n", "is no name"),
        (b"HTTP/1.1 200 OK\r\n: b\r\n\r\n", "is no name"),
        (b"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "bare line break"),
        (b"HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", "bare line break"),
        (b"HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", "NUL"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "'-1', which is no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n", "'1_0', which is no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", "'1, 2', which is no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", "which is no number"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "'gzip, chunked'"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"a" * MAX_HEAD, "longer than 65536 bytes"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"a" * MAX_HEAD + b"\r\n\r\n", "longer than 65536 bytes"),
    ],
)
def test_says_what_is_wrong_with_a_head(data: bytes, said: str) -> None:
    assert said in complaint(data)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"xyz\r\n", "begins with 'xyz\\r\\n', not its size"),
        (b"0x3\r\nabc\r\n", "not its size"),
        (b"-3\r\nabc\r\n", "not its size"),
        (b"\r\n", "not its size"),
        (b"3\nabc\r\n", "not its size"),
        (b"1" * 17 + b"\r\n", "not its size"),
        (b"3;" + b"x" * MAX_LINE, "not its size"),
        (b"3;" + b"x" * MAX_LINE + b"\r\n", "not its size"),
        (b"3\r\nabcd\r\n", "longer than it says"),
        (b"0\r\nbad trailer\r\n\r\n", "no name"),
        (b"0\r\nA: " + b"a" * MAX_HEAD, "trailers of the answer are longer than 65536"),
    ],
)
def test_says_what_is_wrong_with_a_chunk(body: bytes, said: str) -> None:
    assert said in complaint(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
    ],
)
def test_notices_an_answer_that_is_cut(data: bytes) -> None:
    assert "in the middle of its answer" in complaint(data, closes=True)


def test_tells_silence_from_a_cut_answer() -> None:
    with pytest.raises(Malformed, match="without an answer"):
        ResponseParser("GET").eof()


# --- however it is cut -------------------------------------------------------------------------

TOKENS = st.text("abcXYZ-019", min_size=1, max_size=8)
VALUES = st.text("abc ;,=019", max_size=12).map(str.strip)
FIELDS = st.lists(st.tuples(TOKENS.map("X-{}".format), VALUES), max_size=5)


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    fields = "".join(f"{name}: {value}\r\n" for name, value in draw(FIELDS))
    parts = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=5))
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"]))
    kind = draw(st.sampled_from(["counted", "chunked", "until close", "none"]))
    status = draw(st.sampled_from([200, 201, 404, 500]))
    if kind == "counted":
        fields += f"Content-Length: {sum(map(len, parts))}\r\n"
        body = b"".join(parts)
    elif kind == "chunked":
        fields += "Transfer-Encoding: chunked\r\n"
        extension = draw(st.sampled_from([b"", b";a=b", b" ; c"]))
        body = b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts)
        body += b"0\r\n" + draw(st.sampled_from([b"", b"T: v\r\n", b"T: v\r\nU: w\r\n"])) + b"\r\n"
    elif kind == "until close":
        body = b"".join(parts)
    else:
        status, body = 204, b""
    surplus = draw(st.sampled_from([b"", b"", b"HTTP"])) if kind != "until close" else b""
    return interim + f"HTTP/1.1 {status} X\r\n{fields}\r\n".encode() + body + surplus


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An answer with a few bytes changed, or cut off."""
    data = bytearray(draw(answers()))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
        if not data:
            break
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


def outcome(pieces: list[bytes]) -> object:
    """All that can be seen of an answer, or that it is none."""
    parser = ResponseParser("GET")
    body = b""
    try:
        for piece in pieces:
            parser.feed(piece)
            body += parser.take()
        parser.eof()
    except Malformed as error:
        return type(error)
    return parser.status, parser.headers, body, parser.keep_alive, parser.surplus


@given(st.one_of(answers(), damaged()), st.data())
def test_gives_the_same_however_the_bytes_are_cut(data: bytes, draw: st.DataObject) -> None:
    cuts = draw.draw(st.lists(st.integers(0, len(data)), max_size=12).map(sorted))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]
    one_by_one = [data[at : at + 1] for at in range(len(data))]
    whole = outcome([data] if data else [])
    assert outcome(pieces) == whole
    assert outcome(one_by_one) == whole


@given(answers())
def test_understands_every_proper_answer(data: bytes) -> None:
    assert outcome([data]) is not Malformed


@given(st.binary(max_size=200))
def test_survives_garbage(data: bytes) -> None:
    assert outcome([data] if data else []) is not None


# --- compressed bodies -------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_unpacks_what_was_compressed(body: bytes) -> None:
    assert decoded({"content-encoding": "gzip"}, gzip.compress(body), 1000) == body
    assert decoded({"content-encoding": "identity"}, body, 1000) == body
    assert decoded({}, body, 1000) == body


@pytest.mark.parametrize(
    "body",
    [b"plain", gzip.compress(b"a" * 100)[:-9], gzip.compress(b"a" * 100)[:-1] + b"\xff", b"\x1f"],
    ids=["plain", "cut off", "damaged", "one byte"],
)
def test_refuses_what_cannot_be_unpacked(body: bytes) -> None:
    with pytest.raises(Malformed, match="cannot be unpacked"):
        decoded({"content-encoding": "gzip"}, body, 1000)


def test_refuses_a_coding_that_was_not_offered() -> None:
    with pytest.raises(Malformed, match="'br'"):
        decoded({"content-encoding": "br"}, b"x", 1000)

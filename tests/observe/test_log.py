import io
import json
import logging
import os
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.observe import log as logs

HEAD = re.compile(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [\w.]+:\d+\] ")


def record(message: str, *args: Any, level: int = logging.INFO, **fields: Any) -> logging.LogRecord:
    made = logging.getLogger("test").makeRecord(
        "mooring.test", level, "/src/scheduler.py", 42, message, args, None, extra=fields
    )
    made.created = 1794780245.123456
    return made


def text(made: logging.LogRecord) -> str:
    return logs.TextLines().format(made)


def as_json(made: logging.LogRecord) -> Any:
    line = logs.JsonLines().format(made)
    assert "\n" not in line
    return json.loads(line)


def broken() -> logging.LogRecord:
    made = record("it broke", level=logging.ERROR, pod="ns/a")
    try:
        raise ValueError("first line\nI1115 00:00:00.000000 1 fake.py:1] second\x1b[31m")
    except ValueError as error:
        made.exc_info = (type(error), error, error.__traceback__)
    return made


# --- text ----------------------------------------------------------------------------------------


def test_writes_lines_as_klog_does() -> None:
    line = text(record("Successfully bound pod to node", pod="ns/a", node="n1", nodes=5))
    assert re.fullmatch(r"I1115 \d\d:\d\d:05\.123456 .*", line)
    head, _, rest = line.partition("] ")
    assert head.endswith(f" {os.getpid():>7} scheduler.py:42")
    assert rest == '"Successfully bound pod to node" pod="ns/a" node="n1" nodes=5'


@pytest.mark.parametrize(
    ("level", "letter"),
    [(logging.DEBUG, "I"), (logging.INFO, "I"), (logging.WARNING, "W"), (logging.ERROR, "E")],
)
def test_begins_with_the_letter_of_the_severity(level: int, letter: str) -> None:
    assert text(record("x", level=level)).startswith(letter)


def test_fills_in_arguments() -> None:
    assert text(record("%s of %d", "one", 2)).endswith('] "one of 2"')


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", '"plain"'),
        ('say "hi" \\o/', r'"say \"hi\" \\o/"'),
        ("a\nI1115 fake", r'"a\nI1115 fake"'),
        ("\x1b[31mred\x1b[0m", r'"\x1b[31mred\x1b[0m"'),
        ("tab\tret\r", r'"tab\tret\r"'),
        ("line\u2028sep\x85\x9b", r'"line\u2028sep\x85\x9b"'),
        ("half\ud800", r'"half\ud800"'),
        ("äöü 中", '"äöü 中"'),
        ("%s %d %n", '"%s %d %n"'),
        (3, "3"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        (["a", 'b"'], r'["a", "b\""]'),
        (ValueError("boom"), '"boom"'),
        (float("nan"), '"nan"'),
    ],
)
def test_lets_no_value_out_of_its_quotes(value: object, shown: str) -> None:
    assert text(record("m", key=value)).endswith(f'] "m" key={shown}')


@given(st.text(), st.text(), st.text())
def test_keeps_a_record_on_one_line(message: str, key: str, value: str) -> None:
    made = record(message.replace("%", "%%"), value=value, other=[key])
    line = text(made)
    assert line.isprintable()
    assert HEAD.match(line)


def test_indents_tracebacks_and_escapes_what_is_in_them() -> None:
    first, *rest = text(broken()).split("\n")
    message = r'"ValueError: first line\nI1115 00:00:00.000000 1 fake.py:1] second\x1b[31m"'
    assert first.endswith(f'] "it broke" pod="ns/a" err={message}')
    assert rest[0] == "\tTraceback (most recent call last):"
    assert rest[-1] == "\tI1115 00:00:00.000000 1 fake.py:1] second\\x1b[31m"
    assert all(line.startswith("\t") for line in rest)


# --- JSON ----------------------------------------------------------------------------------------


def test_writes_json_as_kubernetes_does() -> None:
    assert as_json(record("Successfully bound pod to node", pod="ns/a", nodes=5)) == {
        "ts": 1794780245123.456,
        "caller": "scheduler.py:42",
        "msg": "Successfully bound pod to node",
        "v": 2,
        "pod": "ns/a",
        "nodes": 5,
    }


def test_says_in_json_what_is_a_warning_and_what_an_error() -> None:
    warning = as_json(record("careful", level=logging.WARNING))
    assert (warning["v"], warning["severity"]) == (0, "warning")
    error = as_json(record("broke", level=logging.ERROR, error="why"))
    assert (error["severity"], error["err"]) == ("error", "why")
    assert "v" not in error


def test_puts_tracebacks_under_a_key_of_their_own() -> None:
    line = as_json(broken())
    assert line["err"].startswith("ValueError: first line\n")
    assert line["stacktrace"].startswith("Traceback (most recent call last):\n")


def test_lets_fields_not_pass_for_what_the_line_itself_says() -> None:
    line = as_json(record("m", ts="never", caller="me", severity="none", stacktrace="x"))
    assert (line["ts"], line["ts_"]) == (1794780245123.456, "never")
    assert (line["caller"], line["caller_"]) == ("scheduler.py:42", "me")
    assert "severity" not in line
    assert "stacktrace" not in line


@given(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.integers() | st.text(), inner),
    ),
)
def test_writes_valid_ascii_json_whatever_comes(message: str, value: object) -> None:
    line = logs.JsonLines().format(record(message.replace("%", "%%"), value=value))
    assert line.isascii()
    assert "\n" not in line
    assert "\x1b" not in line
    assert json.loads(line, parse_constant=pytest.fail)["msg"] == message.replace("%", "%%")


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_survives_values_that_cannot_be_shown() -> None:
    shown = "<Unspeakable that can't be shown>"
    assert text(record("m", value=Unspeakable())).endswith(f'"{shown}"')
    assert as_json(record("m", value=[Unspeakable()]))["value"] == [shown]
    assert as_json(record("%d apples", "x"))["msg"] == "%d apples ('x',)"
    assert as_json(record("%s", Unspeakable()))["msg"].startswith("%s ")


# --- how much ------------------------------------------------------------------------------------


def shown_at(verbosity: int, logger: str) -> list[str]:
    stream = io.StringIO()
    logs.configure(verbosity, "json", stream)
    log = logging.getLogger(logger)
    log.error("error")
    log.warning("warning")
    log.info("v0", extra={"v": 0})
    log.info("v1", extra={"v": 1})
    log.info("info")
    log.info("v3", extra={"v": 3})
    log.debug("debug")
    log.debug("v5", extra={"v": 5})
    return [json.loads(line)["msg"] for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("verbosity", "shown"),
    [
        (0, "error warning v0"),
        (1, "error warning v0 v1"),
        (2, "error warning v0 v1 info"),
        (3, "error warning v0 v1 info v3"),
        (4, "error warning v0 v1 info v3 debug"),
        (10, "error warning v0 v1 info v3 debug v5"),
    ],
)
def test_shows_as_much_as_it_is_asked_to(verbosity: int, shown: str) -> None:
    assert shown_at(verbosity, "mooring.cli.run") == shown.split()


def test_spends_nothing_on_hidden_lines_where_pods_are_scheduled() -> None:
    logs.configure(0, "text", io.StringIO())
    for room in ("scheduler.scheduler", "queue.places", "runtime.guard", "plugins.nodename"):
        log = logging.getLogger(f"mooring.{room}")
        assert not log.isEnabledFor(logging.INFO)
        assert log.isEnabledFor(logging.WARNING)
    logs.configure(2, "text", io.StringIO())
    assert logging.getLogger("mooring.scheduler.scheduler").isEnabledFor(logging.INFO)
    assert not logging.getLogger("mooring.queue.sub_queues").isEnabledFor(logging.DEBUG)
    logs.configure(4, "text", io.StringIO())
    assert logging.getLogger("mooring.queue.sub_queues").isEnabledFor(logging.DEBUG)
    assert shown_at(2, "mooring.scheduler.scheduler") == ["error", "warning", "v0", "v1", "info"]


def test_shows_what_plugins_of_others_say_and_warnings_of_libraries() -> None:
    assert shown_at(2, "acme.headroom") == ["error", "warning", "v0", "v1", "info"]
    assert shown_at(10, "aiohttp.access") == ["error", "warning"]


def test_replaces_what_was_configured_before() -> None:
    first, second = io.StringIO(), io.StringIO()
    logs.configure(2, "json", first)
    logs.configure(2, "text", second)
    logging.getLogger("mooring.cli").info("hello")
    assert first.getvalue() == ""
    assert second.getvalue().endswith('] "hello"\n')


def test_a_pipe_that_is_not_read_blocks_nothing() -> None:
    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as stream, open(reading, "rb") as reader:
        handler = logs.configure(2, "text", stream)
        log = logging.getLogger("mooring.test")
        for number in range(4000):
            log.info("x" * 1000, extra={"number": number})
        written: list[str] = []
        while not (written and "log lines were dropped" in written[-1]):
            written.append(reader.readline().decode())
        numbers = [int(found[1]) for line in written if (found := re.search(r"number=(\d+)", line))]
        assert numbers == sorted(set(numbers))
        assert all(HEAD.match(line) for line in written)
        assert f"count={4000 - len(numbers)}" in written[-1]
        assert numbers[:1000] == list(range(1000))
        log.info("later")
        assert '"later"' in reader.readline().decode()
        logging.getLogger().removeHandler(handler)


def test_what_a_closed_pipe_or_a_full_disk_does_not_take_is_lost() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for target in (writing, "/dev/full"):
        with open(target, "w", encoding="utf-8") as stream:
            handler = logs.configure(2, "text", stream)
            logging.getLogger("mooring.test").info("lost")
            logging.getLogger().removeHandler(handler)


# --- blocks and levels ---------------------------------------------------------------------------


def test_a_block_is_shown_in_lines_as_klog_shows_them() -> None:
    line = text(record("Dump", nodes=logs.TextBlock('one "1"\nI1115 fake\x1b\n'), count=2))
    assert line.partition("] ")[2] == '"Dump" nodes=<\n\tone "1"\n\tI1115 fake\\x1b\n > count=2'
    assert text(record("Dump", nodes=logs.TextBlock(""))).endswith('"Dump" nodes=""')
    assert as_json(record("Dump", nodes=logs.TextBlock("a\nb")))["nodes"] == "a\nb"


def test_a_trace_line_is_shown_from_v10_on() -> None:
    assert logs.verbosity_of(record("x", level=logs.TRACE)) == 10
    for verbosity, is_enabled in ((9, False), (10, True)):
        handler = logs.configure(verbosity, "text", io.StringIO())
        try:
            assert logging.getLogger("mooring.scheduler").isEnabledFor(logs.TRACE) is is_enabled
        finally:
            logging.getLogger().removeHandler(handler)

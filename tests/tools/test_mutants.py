"""Mutants are found where they should be, and the tests of a small package catch or miss them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from textwrap import dedent

import pytest
from tools.mutation.finding import Mutant, find
from tools.mutation.running import Outcome, Worker
from tools.mutation.sampling import sample

from tools import mutants

COMMAND = Path(__file__).parents[2] / "tools" / "mutants.py"
BUDGET = """\
LIMIT = 10  # pods


def fits(wanted: int, spare: int) -> bool:
    return wanted <= spare


def rounded(wanted: int) -> int:
    total = 0
    while total < wanted:
        total += 4
    return total
"""
TESTS = """\
from tiny.budget import fits, rounded


def test_fits() -> None:
    assert fits(1, 2)
    assert not fits(3, 2)


def test_rounded() -> None:
    assert rounded(5) == 8
"""


def changes(code: str, kind: str | None = None) -> set[str]:
    """The lines of the mutants of some code."""
    found = find("src/code.py", dedent(code).encode())
    return {mutant.after for mutant in found if kind in (None, mutant.kind)}


# --- what is found -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind", "expected"),
    [
        ("x = a < b", "comparison", {"x = a <= b", "x = a >= b"}),
        ("x = a < b >= c", "comparison", {
            "x = a <= b >= c", "x = a >= b >= c", "x = a < b > c", "x = a < b < c",
        }),
        ("x = a == b", "comparison", {"x = a != b"}),
        ("x = a is not b", "comparison", {"x = a is b"}),
        ("x = a is b", "comparison", {"x = a is not b"}),
        ("x = a not  in b", "comparison", {"x = a in b"}),
        ("x = (a) in (b)", "comparison", {"x = (a) not in (b)"}),
        ("x = a + b - c", "arithmetic", {"x = a - b - c", "x = a + b + c"}),
        ("x = a * b // c", "arithmetic", {"x = a // b // c", "x = a * b * c"}),
        ("x += a", "arithmetic", {"x -= a"}),
        ("def f(): return a & b", "arithmetic", {"def f(): return a | b"}),
        ("x = a and b and c", "and/or", {"x = a or b and c", "x = a and b or c"}),
        ("x = not a", "negation", {"x = a"}),
        ("x = not (a or b)", "negation", {"x = (a or b)"}),
        ("if a: f()", "negation", {"if not (a): f()"}),
        ("if a: f()", "condition", {"if True: f()", "if False: f()"}),
        ("x = b if a else c", "condition", {"x = b if True else c", "x = b if False else c"}),
        ("x = [b for b in c if a]", "condition", {
            "x = [b for b in c if True]", "x = [b for b in c if False]",
        }),
        ("while a: f()", "condition", {"while False: f()"}),
        ("x = 0", "constant", {"x = 1", "x = -1"}),
        ("x = 4_096", "constant", {"x = 4097", "x = 4095"}),
        ("x = True", "constant", {"x = False"}),
        ("f(a)", "statement", {"pass"}),
        ("def f(): g(key=a)", "argument", {"def f(): g(key=None)"}),
        ("def f() -> int | None: return a", "result", {"def f() -> int | None: return None"}),
        ("def f() -> Optional[int]: return a", "result", {"def f() -> Optional[int]: return None"}),
    ],
)  # fmt: skip
def test_finds(code: str, kind: str, expected: set[str]) -> None:
    assert changes(code, kind) == expected


@pytest.mark.parametrize(
    "code",
    [
        '"""Text with 1 < 2 and 3."""',
        "__slots__ = (1, 2)",
        "x: Literal[1, 2]",
        "def f(a: Literal[1] = b) -> Literal[2]: ...",
        "Number = int | float",
        "if TYPE_CHECKING:\n    import a\n    f(1)",
        "if __name__ == '__main__':\n    f(1)",
        "log.info('one', extra={'count': 1})",
        "assert a < 1",
        "x = f'{a + 1}'",
        "x = 'a' + b",
        "@cache(1)\nclass A(B, frozen=True): ...",
        "x = zip(a, b, strict=True)",
        "def f() -> int: return a",
    ],
)
def test_leaves_alone(code: str) -> None:
    assert changes(code) == set()


def test_removes_assignments_unless_the_name_would_not_exist_at_all() -> None:
    code = """
        class A:
            def __init__(self):
                self.once = f
                self.twice = f

            def g(self, argument):
                once = f
                twice = f
                twice = g
                argument = g
                self.twice = g
                x[once] = y
                a, x[once] = y
    """
    assert [mutant.before for mutant in find("a.py", dedent(code).encode())] == [
        "self.twice = f",
        "twice = f",
        "twice = g",
        "argument = g",
        "self.twice = g",
        "x[once] = y",
        "a, x[once] = y",
    ]


def test_removes_jumps_unless_nothing_follows_them() -> None:
    code = """
        def f():
            for a in b:
                if a:
                    continue
                elif b:
                    break
                if c:
                    continue
            if d:
                return 1.5
            with e:
                return a
    """
    found = find("a.py", dedent(code).encode())
    jumps = [(mutant.line, mutant.before) for mutant in found if mutant.kind == "jump"]
    assert jumps == [(5, "continue"), (7, "break"), (11, "return 1.5")]


def test_changes_nothing_but_the_place() -> None:
    code = 'x = "é"; y = a <= (  # is < b?\n    b  # ü\n) or é\n# end'.encode()
    (swapped, inverted) = (one for one in find("a.py", code) if one.kind == "comparison")
    assert swapped.apply(code).decode() == code.decode().replace("<=", "<")
    assert inverted.apply(code).decode() == code.decode().replace("<=", ">")
    assert swapped.line == 1
    assert swapped.id == 'a.py ## comparison ## x = "é"; y = a <= ( ## x = "é"; y = a < ('
    (either,) = (one for one in find("a.py", code) if one.kind == "and/or")
    assert (either.line, either.before, either.after) == (3, ") or é", ") and é")


def test_puts_pass_for_a_statement_of_many_lines() -> None:
    code = b"f(\n    a,\n    b,  # why\n)\ng = a\n"
    (removed,) = find("a.py", code)
    assert removed.apply(code) == b"pass\ng = a\n"
    assert removed.before == "f( a, b, )"
    assert removed.diff(code).splitlines()[2:] == [
        "@@ -1,5 +1,2 @@", "-f(", "-    a,", "-    b,  # why", "-)", "+pass", " g = a",
    ]  # fmt: skip


# --- which are tried -----------------------------------------------------------------------------


def test_spreads_the_mutants_over_the_files_by_their_lines() -> None:
    sources = {"long.py": b"x = 1\ny = a < b\n" * 30, "short.py": b"x = 1\ny = a < b\n" * 10}
    chosen = sample(sources, 40, seed=1)
    assert [mutant.file for mutant in chosen].count("long.py") == 30
    assert chosen == sample(sources, 40, seed=1) != sample(sources, 40, seed=2)
    assert len(set(chosen)) == 40


def test_takes_all_there_are_if_they_are_fewer() -> None:
    sources = {"long.py": b"x = a\n" * 30, "short.py": b"x = 1\n"}
    assert [mutant.after for mutant in sample(sources, 40, seed=1)] == ["x = 0", "x = 2"]


def test_tries_no_mutant_that_is_no_other_program() -> None:
    source = b"if 1 == a:\n    f()\nx = -0\n"
    chosen = sample({"a.py": source}, 100, seed=1)
    assert len({mutant.apply(source) for mutant in chosen}) == len(chosen)
    for mutant in chosen:
        compile(mutant.apply(source), "a.py", "exec")


# --- the tests of a small package ----------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package with tests, and the current one."""
    (tmp_path / "src" / "tiny").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "src" / "tiny" / "__init__.py").touch()
    (tmp_path / "src" / "tiny" / "budget.py").write_text(BUDGET, encoding="utf-8")
    (tmp_path / "tests" / "test_budget.py").write_text(TESTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they are slow to import
    return tmp_path


MUTANTS = find("src/tiny/budget.py", BUDGET.encode())


def pick(after: str) -> Mutant:
    (found,) = (mutant for mutant in MUTANTS if mutant.after == after)
    return found


def outcome(worker: Worker, mutant: Mutant | None) -> str:
    worker.start(mutant)
    while (found := worker.ended()) is None:
        time.sleep(0.01)
    return found


def test_a_worker_tells_what_became_of_a_mutant(tiny: Path) -> None:
    worker = Worker(tiny / "worker", ["tests"], timeout=60)
    assert worker.imports("src/tiny/budget.py")
    assert outcome(worker, pick("return wanted < spare")) == "SURVIVED"
    assert outcome(worker, pick("return wanted > spare")) == "caught"
    assert "test_fits" in worker.output
    assert outcome(worker, None) == "SURVIVED"  # the source is as it was
    assert (tiny / "src" / "tiny" / "budget.py").read_text(encoding="utf-8") == BUDGET


@pytest.fixture
def pipe(tiny: Path) -> Path:
    """Holds a line for as long as processes of the tests run, and another if one runs too long."""
    os.mkfifo(tiny / "pipe")
    child = "import time; print('started', flush=True); time.sleep(30); print('left alone')"
    conftest = f"""
        import subprocess, sys
        command = [sys.executable, "-c", {child!r}]
        child = subprocess.Popen(command, stdout=open("pipe", "w"))
    """
    (tiny / "tests" / "conftest.py").write_text(dedent(conftest), encoding="utf-8")
    return tiny / "pipe"


def test_a_run_that_hangs_is_caught_and_leaves_no_process(tiny: Path, pipe: Path) -> None:
    worker = Worker(tiny / "worker", ["tests"], timeout=60)
    (endless,) = (one for one in MUTANTS if (one.before, one.after) == ("total += 4", "pass"))
    worker.start(endless)
    with pipe.open(encoding="utf-8") as told:
        assert told.readline() == "started\n"
        assert worker.ended() is None
        worker.timeout = 0
        assert worker.ended() == "timeout"
        assert told.read() == ""


def run(*options: str, paths: Sequence[str] = ("src/tiny",)) -> int:
    return mutants.main([*paths, "--tests", "tests", "--timeout", "60", *options])


def restrict(monkeypatch: pytest.MonkeyPatch, *afters: str) -> list[Mutant]:
    """Let the command try these mutants only."""
    chosen = [pick(after) for after in afters]
    monkeypatch.setattr(mutants, "sample", lambda sources, count, seed: chosen)
    return chosen


def test_reports_survivors(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    survivor, _ = restrict(monkeypatch, "return wanted < spare", "return wanted > spare")
    found = tiny / "found.json"
    assert run("--jobs", "2", "--survivors", str(found)) == 1
    told = capsys.readouterr()
    assert "2 mutants: 1 caught (0 by timeout), 1 survived, 0 known" in told.out
    assert "50.0% caught" in told.out
    assert "-    return wanted <= spare\n+    return wanted < spare\n" in told.out
    assert "src/tiny/budget.py:5 comparison SURVIVED" in told.err
    assert "src/tiny/budget.py:5 comparison caught" in told.err
    (written,) = json.loads(found.read_text(encoding="utf-8"))
    assert (written["id"], written["line"]) == (survivor.id, 5)


def test_writes_each_survivor_before_the_next_mutant_is_tried(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = restrict(
        monkeypatch, "return wanted < spare", "LIMIT = 11", "return wanted > spare"
    )
    found = tiny / "found.json"
    written: list[list[str]] = []

    def ended(worker: PreparedWorker) -> Outcome:
        text = found.read_text(encoding="utf-8") if found.exists() else "[]"
        written.append([one["id"] for one in json.loads(text)])
        return "caught" if worker.mutant and ">" in worker.mutant.after else "SURVIVED"

    monkeypatch.setattr(PreparedWorker, "ended", ended)
    monkeypatch.setattr(mutants, "workers", lambda *_: nullcontext([PreparedWorker()]))
    run("--survivors", str(found))
    assert written[1:] == [[], [first.id], [second.id, first.id]]


class PreparedWorker:
    """Runs nothing."""

    mutant: Mutant | None = None
    timeout = seconds = 1.0
    output = ""

    def imports(self, file: str) -> bool:
        return True

    def start(self, mutant: Mutant | None) -> None:
        self.mutant = mutant

    def ended(self) -> Outcome:
        raise NotImplementedError


def test_counts_known_survivors_apart(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    survivor, caught = restrict(monkeypatch, "return wanted < spare", "return wanted > spare")
    known = tiny / "known.txt"
    elsewhere = "src/tiny/budget.py ## constant ## gone = 1 ## gone = 2"
    lines = ["# a comment", "", *(f"{one} ## why" for one in (survivor.id, caught.id, elsewhere))]
    known.write_text("\n".join(lines), encoding="utf-8")
    assert run("--known", str(known)) == 0
    told = capsys.readouterr()
    assert "1 caught (0 by timeout), 0 survived, 1 known" in told.out
    assert "100.0% caught" in told.out
    assert f"known, but caught: remove it from the list\n{caught.id}\n" in told.out
    assert f"no longer in the source: remove it from the list\n{elsewhere}\n" in told.out
    assert "SURVIVED (known)" in told.err


def test_trusts_that_known_mutants_survive(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    survivor, _ = restrict(monkeypatch, "return wanted < spare", "return wanted > spare")
    known = tiny / "known.txt"
    known.write_text(f"{survivor.id} ## why\n", encoding="utf-8")
    monkeypatch.setattr(
        PreparedWorker, "ended", lambda worker: "caught" if worker.mutant else "SURVIVED"
    )
    monkeypatch.setattr(mutants, "workers", lambda *_: nullcontext([PreparedWorker()]))
    assert run("--known", str(known), "--trust-known") == 0
    told = capsys.readouterr()
    assert "2 mutants: 1 caught (0 by timeout), 0 survived, 1 known" in told.out
    assert "1/1 " in told.err


def test_trusts_no_mutant_whose_line_is_in_the_file_twice() -> None:
    source = b"if a:\n    f()\nif b:\n    f()\ng()\n"
    found = [mutant for mutant in find("a.py", source) if mutant.kind == "statement"]
    known = {mutant.id: "why" for mutant in found}
    assert [one.before for one in found] == ["f()", "f()", "g()"]
    assert mutants.trusted(found, known, {"a.py": source}) == found[2:]


def test_refuses_a_known_mutant_without_a_reason(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = tiny / "known.txt"
    known.write_text(f"{pick('LIMIT = 11').id} ## \n", encoding="utf-8")
    with pytest.raises(SystemExit):
        run("--known", str(known))
    assert "known.txt:1: expected file ## kind ##" in capsys.readouterr().err


def test_stops_if_the_tests_fail_without_any_mutant(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tiny / "tests" / "test_red.py").write_text("def test_red(): assert 0\n", encoding="utf-8")
    assert run() == 2
    told = capsys.readouterr()
    assert "the tests fail without any mutant" in told.err
    assert "test_red" in told.err


def test_takes_only_the_files_named(tiny: Path) -> None:
    assert list(mutants.read_sources([Path("src")], [Path("budget.py")])) == ["src/tiny/budget.py"]
    with pytest.raises(ValueError, match=r"no such file: other\.py"):
        mutants.read_sources([Path("src")], [Path("other.py")])
    with pytest.raises(ValueError, match="tests is not under"):
        mutants.read_sources([Path("tests")], [])


def test_runs_the_tests_in_the_order_given(tiny: Path) -> None:
    (tiny / "tests" / "test_a.py").touch()
    ordered = mutants.in_order(["tests/test_budget.py", "tests"])
    assert ordered == ["tests/test_budget.py", "tests/test_a.py"]


def test_ends_in_good_order_when_interrupted(tiny: Path, pipe: Path) -> None:
    (tiny / "temporary").mkdir()
    (tiny / "tests" / "test_slow.py").write_text("import time\ntime.sleep(30)", encoding="utf-8")
    command = subprocess.Popen(
        [sys.executable, str(COMMAND), "src/tiny", "--tests", "tests"],
        env={**os.environ, "TMPDIR": str(tiny / "temporary")},
        stdout=subprocess.PIPE,
        text=True,
    )
    with pipe.open(encoding="utf-8") as told:
        assert told.readline() == "started\n"
        command.send_signal(signal.SIGINT)
        shown, _ = command.communicate(timeout=60)
        assert told.read() == ""
    assert command.returncode == 130
    assert "interrupted after 0 of" in shown
    assert list((tiny / "temporary").iterdir()) == []

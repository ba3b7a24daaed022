"""Programs beside a test end when told, and with the test whatever ends that."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.controlplane.processes import Port, Process, ProcessError, listens
from tests.controlplane.waiting import wait_until

FOREVER = ["/bin/sleep", "1000"]
# Imports a module of the test, which sleeps or tells where it is.
MOORING = [sys.executable, "-m", "mooring", "run", "--plugin", "written:Plugin"]
TELLS = """
import os, signal, sys
main = sys.modules["__main__"]
print(sys.argv, sys.orig_argv, sys.path, sys.flags, main.__file__, main.__spec__.name)
print(os.getcwd(), sorted(os.environ.items()), os.getsid(0) == os.getpid())
print([signal.getsignal(number) for number in sorted(signal.valid_signals())])
for stream in (sys.stdout, sys.stderr):
    print(type(stream.buffer), stream.encoding, stream.errors, stream.write_through)
print({number: os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)})
"""


@pytest.fixture(params=["program", "fork"])
def sleeper(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Process]:
    process = Process("sleeper", FOREVER, tmp_path / "log")
    if request.param == "fork":
        process = forked(tmp_path, "import time; time.sleep(1000)")
    yield process
    process.kill()


def forked(folder: Path, module: str, *, really: bool = True) -> Process:
    """A scheduler that imports this module first; `really` a fork, or started like any program."""
    (folder / "written.py").write_text(module)
    env = {"PYTHONPATH": str(folder), "PYTHONUNBUFFERED": "1", "ADDED": "really"}
    return Process("fork", MOORING, folder / "log", env=env, cwd=folder, forked=really)


def state(pid: int) -> str:
    """The kernel's letter for it: T is stopped, Z and empty are gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_process_is_paused_resumed_and_killed(sleeper: Process) -> None:
    sleeper.start()
    sleeper.pause()
    wait_until(lambda: state(sleeper.pid) == "T", what="it stands still")
    sleeper.resume()
    wait_until(lambda: state(sleeper.pid) in ("S", "R"), what="it goes on")
    sleeper.kill()
    assert not sleeper.is_alive
    assert sleeper.exit_code == -signal.SIGKILL


def test_process_stops_even_while_it_is_paused(sleeper: Process) -> None:
    sleeper.start()
    sleeper.pause()
    sleeper.stop()
    assert sleeper.exit_code == -signal.SIGTERM


def test_process_that_ignores_the_request_is_made_to_stop(tmp_path: Path) -> None:
    deaf = Process(
        "deaf",
        ["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"],
        tmp_path / "log",
        ready=lambda: "deaf" in (tmp_path / "log").read_text(),
    )
    deaf.start().wait_ready()
    deaf.stop(timeout=0.1)
    assert deaf.exit_code == -signal.SIGKILL


def test_process_restarts_with_the_same_command(sleeper: Process) -> None:
    first = sleeper.start().pid
    assert sleeper.restart().pid != first
    assert sleeper.is_alive
    with pytest.raises(ProcessError, match="runs already"):
        sleeper.start()


def test_process_that_ends_early_leaves_its_last_words(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "echo no such flag >&2; exit 3"]
    process = Process("fussy", command, tmp_path / "log", ready=lambda: False)
    with pytest.raises(ProcessError, match=r"fussy ended with 3.*\n(.*\n)*no such flag"):
        process.start().wait_ready()


def test_process_outlives_the_thread_that_started_it(sleeper: Process) -> None:
    with ThreadPoolExecutor() as threads:
        threads.submit(sleeper.start).result()
    sleeper.pause()  # the thread is gone, and there is still somebody to pause
    wait_until(lambda: state(sleeper.pid) == "T", what="it stands still")


@pytest.mark.skipif(sys.platform != "linux", reason="there are no forks elsewhere")
def test_fork_is_like_a_process_that_was_started_anew(tmp_path: Path) -> None:
    said = {}
    for really in (True, False):
        process = forked(tmp_path, TELLS, really=really).start()
        assert process.wait() == 1  # for there is no such plugin
        said[really] = process.log.read_text()
        process.log.unlink()
    assert "written:Plugin" in said[True]
    assert "('ADDED', 'really')" in said[True]
    assert said[True] == said[False]


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "sys.exit()"])
@pytest.mark.parametrize("is_forked", [False, True], ids=["program", "fork"])
def test_process_ends_with_the_one_that_started_it(
    tmp_path: Path, end: str, is_forked: bool
) -> None:
    (tmp_path / "written.py").write_text("import time; time.sleep(1000)")
    script = f"""
import os, pathlib, sys
from tests.controlplane.processes import Process
log = pathlib.Path({str(tmp_path)!r}) / "log"
command, forked = ({MOORING!r}, True) if {is_forked} else ({FOREVER!r}, False)
print(Process("orphan", command, log, env=os.environ, forked=forked).start().pid, flush=True)
{end}
"""
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"},
        stdout=subprocess.PIPE,
        check=False,
    )
    wait_until(lambda: state(int(ran.stdout)) in ("", "Z"), what="the orphan is gone")


def test_port_stays_ours_while_nobody_listens() -> None:
    port = Port()
    try:
        assert not listens(port.number)
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port.number))
        with socket.socket() as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            ours.bind(("127.0.0.1", port.number))
            ours.listen()
            assert listens(port.number)
        assert not listens(port.number)
    finally:
        port.close()

"""What readers, the record file and the journal cost a scheduler, on a real API server.

    python -m bench.lens_load [--nodes 1000] [--pods 1000] [--rounds 3]

`mooring run` binds the pods of each round; in turn by itself, with 16 open streams and a client
that asks for matrices without pause, and (processes of their own) with `--record-size 0`,
`--record-file` and `--record-journal`. It is stopped while the pods are created, so that all of
them wait when a round begins: it is saturated until the last is bound. Compared are the CPU of its
process per pod, with all its threads, and, with and without readers, the pods bound per second.
What readers take does not grow with the pods: it is also told as a share of a core while they read.
The bounds are 5 % for readers, +3 % for recording. Pods per second need a machine of one's own: the
API server and the readers take their share of it, too. Needs `make control-plane`.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import ssl
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import namespace, nodes, pods
from tests.controlplane.waiting import wait_until
from tests.integration.mooring_process import NAME, Mooring, start_mooring

STREAMS = 16
READER = [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]}]


class Load:
    """Streams, and one explanation with its matrix after the other."""

    def __init__(self, mooring: Mooring, token: str, pod: str) -> None:
        self.read = 0  # bytes of streams
        self.matrices = 0
        self._port = mooring.port
        self._token = token
        self._pod = pod
        self._ends = threading.Event()
        self._tls = ssl.create_default_context()  # the certificate is self-signed
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    @contextmanager
    def running(self) -> Iterator[None]:
        work = [self._follow] * STREAMS + [self._ask]
        threads = [threading.Thread(target=one, daemon=True) for one in work]
        for thread in threads:
            thread.start()
        wait_until(lambda: self.read > STREAMS, what="streams are open")
        try:
            yield
        finally:
            self._ends.set()
            for thread in threads:
                thread.join(60)

    @contextmanager
    def _connected(self) -> Iterator[Callable[[str], http.client.HTTPResponse]]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls)
        headers = {"Authorization": f"Bearer {self._token}", "Accept-Encoding": "gzip"}

        def get(path: str) -> http.client.HTTPResponse:
            connection.request("GET", f"/lens/v1/{path}", headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            return answer

        with closing(connection):
            yield get

    def _follow(self) -> None:
        with self._connected() as get:
            answer = get("stream")
            while not self._ends.is_set() and answer.readline():
                self.read += 1

    def _ask(self) -> None:
        with self._connected() as get:
            while not self._ends.is_set():
                get(f"pods/{self._pod}/explain?depth=matrix&preemption=false").read()
                self.matrices += 1


def cpu_of(pid: int) -> float:
    """Seconds in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Rounds:
    """Binds pods on one control plane, round by round."""

    def __init__(self, plane: ControlPlane, count: int) -> None:
        self._plane = plane
        self._count = count
        self._number = 0

    def run(self, mooring: Mooring) -> tuple[float, float]:
        """Seconds of CPU of the process, and seconds."""
        self._number += 1
        name = f"round-{self._number}"
        admin = self._plane.admin
        admin.create(namespace(name))
        pid = mooring.process.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            admin.create_many(pods(self._count, namespace=name, scheduler=NAME))
        finally:
            os.kill(pid, signal.SIGCONT)
        before, began = cpu_of(pid), time.monotonic()

        def bound() -> bool:
            query = {"fieldSelector": "spec.nodeName="}
            return not admin.list("Pod", name, **query)

        wait_until(bound, 300, what="all pods are bound", every=0.1)
        spent = cpu_of(pid) - before, time.monotonic() - began
        admin.delete_all("Pod", name)
        wait_until(lambda: not admin.list("Pod", name), 300, what="they are gone", every=0.5)
        return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--readers-only", action="store_true", help="leave the files out")
    options = parser.parse_args()
    with ControlPlane() as plane, tempfile.TemporaryDirectory() as folder:
        plane.admin.create_many(nodes(options.nodes, zones=10))
        plane.admin.create(namespace("waits"))
        plane.admin.create_many(pods(1, prefix="huge", namespace="waits", scheduler=NAME, cpu="64"))
        user = plane.add_service_account("reader")
        plane.grant(user, READER)
        assert user.token_file is not None
        token = user.token_file.read_text()
        rounds = Rounds(plane, options.pods)
        found: dict[str, list[float]] = {}
        shares: list[float] = []
        rates: list[float] = []  # with readers to without
        kinds = {
            "--record-size 0": ("--record-size=0",),
            "by itself": (),
            "--record-file": (f"--record-file={folder}/decisions.db",),
            "--record-journal": (f"--record-journal={folder}/journal",),
        }
        if options.readers_only:
            kinds = {"by itself": ()}
        for _ in range(options.rounds):
            for kind, flags in kinds.items():
                mooring = start_mooring(plane, flags=("--check-decisions=0", *flags))
                rounds.run(mooring)  # what is made once is made
                alone, quiet = rounds.run(mooring)
                found.setdefault(kind, []).append(alone)
                if kind == "by itself":
                    load = Load(mooring, token, "waits/huge-000000")
                    with load.running():
                        beside, seconds = rounds.run(mooring)
                    shares.append((beside - alone) / seconds)
                    rates.append(quiet / seconds)
                    found.setdefault("with readers", []).append(beside)
                    text = f"{load.read:,} lines of streams, {load.matrices:,} matrices"
                    told = f"{shares[-1]:.1%} of a core, {rates[-1] - 1:+.1%} pods/s"
                    print(f"readers got {text}: {told}", flush=True)
                mooring.process.stop()
    base = statistics.median(found["by itself"])
    for kind, values in found.items():
        value = statistics.median(values)
        each = ", ".join(f"{one * 1e3 / options.pods:.3f}" for one in values)
        print(f"{kind:18} {value / base - 1:+6.1%}; ms of CPU a pod: {each}")
    rate = statistics.median(rates) - 1
    print(f"readers            {statistics.median(shares):6.1%} of a core, {rate:+.1%} pods/s")


if __name__ == "__main__":
    main()

"""`mooring capacity` beside cluster-capacity on the same API server: numbers, seconds, memory.

    python -m bench.clustercapacity [--nodes 1000] [--pods 5000]

cluster-capacity is built by its module name through the Go proxy, outside the tree, once. Both
read a real kube-apiserver, as their users would; CPU seconds and the largest resident set are those
that the kernel counted for each process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import nodes, pod
from tests.golang import GoError, cache_folder, go

MODULE = "sigs.k8s.io/cluster-capacity"
VERSION = "v0.30.0"
# With all that cluster-capacity, which sets no defaults, requires.
POD = """
apiVersion: v1
kind: Pod
metadata: {name: small, namespace: default}
spec:
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  terminationGracePeriodSeconds: 30
  containers:
    - name: c
      image: registry.example/x
      imagePullPolicy: Always
      terminationMessagePolicy: File
      terminationMessagePath: /dev/termination-log
      resources: {requests: {cpu: 150m, memory: 100Mi}}
"""


class Measured(NamedTuple):
    """One program's answer and its cost."""

    total: int
    seconds: float  # of CPU, user and system
    megabytes: float


def build() -> Path:
    """The program, built if it was not before. GoError if the proxy does not have the module."""
    program = cache_folder() / "cluster-capacity" / VERSION / "cluster-capacity"
    if program.exists():
        return program
    command = go()
    if command is None:
        raise GoError(
            "cluster-capacity is built with Go, and there is no Go on this machine's PATH"
        )
    env = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    with tempfile.TemporaryDirectory() as folder:
        found = _go(command, ["mod", "download", "-json", f"{MODULE}@{VERSION}"], folder, env)
        source = Path(folder, "source")
        # Its go.mod has replacements, which count only in the main module.
        shutil.copytree(json.loads(found)["Dir"], source, ignore=shutil.ignore_patterns("vendor"))
        for path in (source, *source.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
        program.parent.mkdir(parents=True, exist_ok=True)
        words = ["build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", str(program)]
        _go(command, [*words, "./cmd/cluster-capacity"], str(source), env)
    return program


def _go(command: str, words: list[str], folder: str, env: dict[str, str]) -> str:
    done = subprocess.run(
        [command, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise GoError(f"{MODULE}@{VERSION}: {done.stderr.strip()[-500:] or done.stdout[-500:]}")
    return done.stdout


def measured(command: Sequence[str], *path: str) -> Measured:
    """Run a program to its end; `path` leads to the number in its JSON."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{command[0]} ended with {process.returncode}")
        output.seek(0)
        found = json.load(output)
    for part in path:
        found = found[part]
    return Measured(int(found), used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.clustercapacity", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=5_000)
    options = parser.parse_args(arguments)
    try:
        theirs = build()
    except GoError as error:
        print(error, file=sys.stderr)
        return 1
    with ControlPlane(large=True) as control_plane, tempfile.TemporaryDirectory() as folder:
        made = nodes(options.nodes, zones=3)
        control_plane.admin.create_many(made)
        names = [one["metadata"]["name"] for one in made]
        control_plane.admin.create_many(
            [pod(f"p{i}", node=names[i % len(names)]) for i in range(options.pods)]
        )
        file = Path(folder, "pod.yaml")
        file.write_text(POD)
        kubeconfig = str(control_plane.kubeconfig_for(control_plane.admin_user))
        where = ["--kubeconfig", kubeconfig]
        ours = [sys.executable, "-m", "mooring", "capacity", "cluster", str(file), "-o", "json"]
        found = {
            "cluster-capacity": measured(
                [str(theirs), *where, "--podspec", str(file), "-o", "json"], "status", "replicas"
            ),
            "mooring capacity --no-gains": measured([*ours, "--no-gains", *where], "total"),
            "mooring capacity": measured([*ours, *where], "total"),
        }
    print(f"{options.nodes:,} nodes, {options.pods:,} pods\n")
    print("| | pods that fit | CPU seconds | largest resident set |")
    print("|---|--:|--:|--:|")
    for name, one in found.items():
        print(f"| {name} | {one.total:,} | {one.seconds:.1f} | {one.megabytes:.0f} MB |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

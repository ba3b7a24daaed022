"""A simulation and a sandbox take snapshots, and dumps as kubectl prints them."""

from __future__ import annotations

from pathlib import Path

import yaml

from mooring.lens.reading import read_snapshot
from mooring.lens.writing import write_snapshot
from mooring.testing import Simulation
from mooring.testing.sandbox import Sandbox

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 500m}}}]}
"""
WORKLOADS = ("deployment", "replicaset")


def dumped(folder: Path, *kinds: str) -> tuple[Path, dict[str, str]]:
    """A cluster as `kubectl get -o yaml` prints it, and where its pods are."""
    with Sandbox() as cluster:
        cluster.add_nodes(2, cpu="4")
        cluster.start_scheduler()
        cluster.apply(DEPLOYMENT)
        cluster.wait_until_running()
        items = [one for kind in ("node", "pod", *kinds) for one in cluster.all(kind)]
        placements = cluster.placements()
    file = folder / "dump.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    return file, placements


def test_a_sandbox_goes_on_from_a_dump(tmp_path: Path) -> None:
    file, placements = dumped(tmp_path, *WORKLOADS)
    with Sandbox() as cluster:
        cluster.apply(file)
        cluster.start_scheduler()
        cluster.advance(60)
        assert cluster.placements() == placements  # no owner made others, none was taken away
        assert {cluster.phase_of(name) for name in placements} == {"Running"}
        assert cluster.get("node", "node-0")["status"]["allocatable"]["cpu"] == "4"
        cluster.apply(file)  # once more changes nothing
        cluster.advance(60)
        assert cluster.placements() == placements


def test_pods_whose_owners_are_not_in_the_file_stay(tmp_path: Path) -> None:
    file, placements = dumped(tmp_path)
    with Sandbox() as cluster:
        cluster.apply(file)
        cluster.advance(60)
        assert cluster.placements() == placements


def test_a_snapshot_fills_a_sandbox_and_a_simulation(tmp_path: Path) -> None:
    file, placements = dumped(tmp_path, *WORKLOADS)
    snap = tmp_path / "x.snap.gz"
    write_snapshot(read_snapshot(file), snap)
    with Sandbox() as cluster:
        cluster.apply(snap)
        cluster.advance(60)
        assert cluster.placements() == placements
    for given in (file, snap, read_snapshot(snap)):
        with Simulation() as sim:
            sim.apply(given)
            sim.settle()
            assert sim.placements() == placements

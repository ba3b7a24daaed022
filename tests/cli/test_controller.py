"""`mooring controller`: what it reads from its command line, and a process of its own."""

from __future__ import annotations

import argparse
import ssl
import urllib.request
from pathlib import Path

import pytest
from tests.cli.process import Running
from tests.controlplane.processes import free_port
from tests.unshowable import RAISES_PARTING

from mooring.cli.commands import add_commands
from mooring.cli.controller import ControllerOptions, find_controller, runner_options
from mooring.cli.options import from_namespace
from mooring.controller import Controller, Election, controller
from mooring.errors import ConfigError

MODULE = """
import random

from mooring.controller import controller

@controller(scheduler_name="mine")
def choose(pod, nodes):
    return random.choice(nodes).name

def plain(pod, nodes):
    return None
"""
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  schedulerName: mine
  containers: [{name: c, image: i}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a_choice.py").write_text(MODULE)
    (tmp_path / "parting.py").write_text(RAISES_PARTING)
    (tmp_path / "pods.yaml").write_text(PODS)
    return tmp_path


def flags(*words: str) -> ControllerOptions:
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers(dest="command"))
    parsed = parser.parse_args(["controller", "a_choice:choose", *words])
    return from_namespace(ControllerOptions, parsed)


@controller(scheduler_name="mine")
def nowhere(pod: object, nodes: object) -> None:
    return None


def test_finds_the_function_by_its_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    found = find_controller("a_choice:choose")
    assert isinstance(found, Controller)
    assert found.scheduler_name == "mine"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a_choice", "a_choice: expected MODULE:NAME"),
        ("a_choice:", "a_choice:: expected MODULE:NAME"),
        ("a_choice:other", "can't be imported: AttributeError"),
        ("no_such_thing:choose", "can't be imported: ModuleNotFoundError"),
        ("parting:choose", "can't be imported: Parting: <Parting that can't be shown>"),
        ("a_choice:plain", "a_choice:plain: is a function, expected a function under @controller"),
    ],
)
def test_says_what_is_wrong_with_a_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, why: str
) -> None:
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(ConfigError, match=why):
        find_controller(path)


def test_has_no_lease_unless_it_is_asked_to_and_then_its_own() -> None:
    assert runner_options(flags(), nowhere).election is None
    assert runner_options(flags("--leader-elect"), nowhere).election == Election(name="mine")
    words = ("--leader-elect", "--leader-elect-resource-name=x", "--leader-elect-lease-duration=1m")
    assert runner_options(flags(*words), nowhere).election == Election(
        name="x", lease_duration=60.0
    )


def test_reads_the_rest_of_its_flags() -> None:
    words = ("--workers=3", "--kube-api-qps=7", "--kube-api-burst=8", "--secure-port=0")
    more = ("--node-selector=pool=gpu", "--shutdown-grace-period=1s")
    options = runner_options(flags(*words, *more), nowhere)
    assert (options.workers, options.qps, options.burst) == (3, 7.0, 8)
    assert (options.node_selector, options.grace, options.reviews) == ("pool=gpu", 1.0, False)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--leader-elect", "--leader-elect-renew-deadline=1h"], "leaderElection"),
        (
            ["--leader-elect", "--leader-elect-resource-name=kube-scheduler"],
            "belongs to kube-scheduler",
        ),
        (["--node-selector=a in b"], "--node-selector"),
        (["--secure-port=70000"], "--secure-port"),
    ],
)
def test_refuses_flags_that_can_not_be_meant(words: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        runner_options(flags(*words), nowhere)


def test_places_pods_shows_its_health_and_goes_when_it_is_told_to(folder: Path) -> None:
    kubeconfig, port = folder / "kubeconfig", free_port()
    up = ("cluster", "up", "--nodes", "2", "--kubeconfig", str(kubeconfig))
    with Running(*up, "--apply", "pods.yaml", folder=folder, forked=True) as cluster:
        cluster.until("Ctrl-C ends it.")
        command = ("controller", "a_choice:choose", "--kubeconfig", str(kubeconfig), "-v", "2")
        serving = ("--bind-address", "127.0.0.1", "--secure-port", str(port))
        with Running(*command, *serving, folder=folder) as running:
            assert 'pod="default/p"' in running.until("Successfully bound pod to node")
            tls = ssl.create_default_context()
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
            url = f"https://127.0.0.1:{port}/readyz?verbose"
            with urllib.request.urlopen(url, context=tls) as answer:
                assert "readyz check passed" in answer.read().decode()
            assert running.stop() == 0
            assert "stopped" in running.all()


def test_ends_with_a_word_when_there_is_no_such_function(folder: Path) -> None:
    with Running("controller", "a_choice:plan", folder=folder) as running:
        assert running.end() == 1
        assert "a_choice:plan: can't be imported: AttributeError" in running.all()
        assert "Traceback" not in running.all()

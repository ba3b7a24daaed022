"""What the real kube-scheduler makes of converted files, compared with what we make of them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.config.old_files import OLD, SEEDS
from tests.controlplane.build import ControlPlaneError, binaries

from mooring import config as cfg
from mooring.errors import ConfigError
from mooring.runtime.profile import plan_profiles
from mooring.runtime.registry import Registry

OF_THE_SEEDS = ("sample-plugin", "tonodename-scoring-plugin")
# Arguments that kube-scheduler does not have.
OURS = {"preemptForeignPods", "deviceChoice", "packNodes", "preemptDeviceHolders"}
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
"""


@pytest.fixture(scope="module")
def kube_scheduler() -> Path:
    try:
        return binaries() / "kube-scheduler"
    except ControlPlaneError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("old", [*OLD, *SEEDS], ids=lambda path: path.name)
def test_kube_scheduler_accepts_it_and_means_the_same(
    old: Path, kube_scheduler: Path, tmp_path: Path
) -> None:
    text = cfg.to_v1_yaml(cfg.read_file(old))
    document = _without_plugins_of_the_seeds(yaml.safe_load(text))
    theirs = _completed_by(kube_scheduler, document, tmp_path)
    ours = _completed_by_us(document)
    assert _profiles(ours) == _profiles(theirs)
    assert _extenders(ours) == _extenders(theirs)
    for field in ("parallelism", "podInitialBackoffSeconds", "podMaxBackoffSeconds"):
        assert ours[field] == theirs[field]
    # Ours take a lease of their own unless they are told otherwise.
    for field in ("leaderElect", "leaseDuration", "resourceLock", "resourceNamespace"):
        assert ours["leaderElection"][field] == theirs["leaderElection"][field]


def test_kube_scheduler_refuses_what_is_not_converted(kube_scheduler: Path, tmp_path: Path) -> None:
    old = yaml.safe_load((OLD[0].parent / "v1beta2-empty.yaml").read_text())
    with pytest.raises(subprocess.CalledProcessError):
        _completed_by(kube_scheduler, old, tmp_path)


@pytest.mark.parametrize(
    "extenders",
    [
        [{"urlPrefix": "http://x", "prioritizeVerb": "p"}],
        [{"urlPrefix": "http://x", "prioritizeVerb": "p", "weight": -1}],
        [{"urlPrefix": "http://x", "bindVerb": "b"}, {"urlPrefix": "http://y", "bindVerb": "b"}],
        [{"urlPrefix": "http://x", "managedResources": [{"name": "cpu"}]}],
        [
            {"urlPrefix": "http://x", "managedResources": [{"name": "a.b/c"}]},
            {"urlPrefix": "http://y", "managedResources": [{"name": "a.b/c"}, {"name": "d.e/f"}]},
        ],
    ],
)
def test_says_about_extenders_what_kube_scheduler_says(
    extenders: list[dict[str, Any]], kube_scheduler: Path, tmp_path: Path
) -> None:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": extenders,
    }
    with pytest.raises(ConfigError) as ours:
        cfg.load_text(yaml.safe_dump(document))
    with pytest.raises(subprocess.CalledProcessError) as theirs:
        _completed_by(kube_scheduler, document, tmp_path)
    said = theirs.value.stderr.decode().replace('\\"', '"')
    assert [str(problem) for problem in ours.value.problems if str(problem) not in said] == []


def _completed_by(program: Path, document: dict[str, Any], folder: Path) -> dict[str, Any]:
    kubeconfig, given, completed = (folder / name for name in ("kubeconfig", "given", "completed"))
    kubeconfig.write_text(KUBECONFIG)
    document = {**document, "clientConnection": {"kubeconfig": str(kubeconfig)}}
    given.write_text(yaml.safe_dump(document))
    command = [
        str(program),
        f"--config={given}",
        f"--write-config-to={completed}",
        "--secure-port=0",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    loaded: dict[str, Any] = yaml.safe_load(completed.read_text())
    return loaded


def _completed_by_us(document: dict[str, Any]) -> dict[str, Any]:
    registry = Registry.discover()
    config = cfg.load_text(yaml.safe_dump(document))
    plans = plan_profiles(config, registry)
    args = {plan.scheduler_name: plan.args for plan in plans}
    loaded: dict[str, Any] = yaml.safe_load(cfg.to_yaml(config, registry.names, args))
    return loaded


def _without_plugins_of_the_seeds(document: dict[str, Any]) -> dict[str, Any]:
    for profile in document.get("profiles", ()):
        for chosen in profile.get("plugins", {}).values():
            enabled = chosen.get("enabled", [])
            chosen["enabled"] = [ref for ref in enabled if ref["name"] not in OF_THE_SEEDS]
        entries = profile.get("pluginConfig", [])
        profile["pluginConfig"] = [e for e in entries if e["name"] not in OF_THE_SEEDS]
    return document


def _profiles(config: dict[str, Any]) -> dict[str, Any]:
    return {
        profile["schedulerName"]: (_plugins(profile["plugins"]), _args(profile["pluginConfig"]))
        for profile in config["profiles"]
    }


def _plugins(plugins: dict[str, Any]) -> dict[str, Any]:
    return {
        point: {
            field: [(ref["name"], ref.get("weight") or 0) for ref in refs]
            for field, refs in chosen.items()
        }
        for point, chosen in plugins.items()
        if chosen
    }


def _args(entries: list[dict[str, Any]]) -> dict[str, Any]:
    nothing: tuple[object, ...] = (None, [], {}, "")
    given = {entry["name"]: _without(nothing, entry["args"]) for entry in entries}
    return {name: args for name, args in given.items() if args}


def _extenders(config: dict[str, Any]) -> list[Any]:
    nothing: tuple[object, ...] = (None, [], {}, "", False, 0)
    return [_without(nothing, extender) for extender in config.get("extenders", ())]


def _without(nothing: tuple[object, ...], value: Any) -> Any:
    """Kube-scheduler leaves empty values out; the header of arguments may be left out."""
    if isinstance(value, list):
        return [_without(nothing, item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without(nothing, inner) for key, inner in value.items()}
    return {
        key: inner
        for key, inner in kept.items()
        if inner not in nothing and key not in {"apiVersion", "kind", *OURS}
    }

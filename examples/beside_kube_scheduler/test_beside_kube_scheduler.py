from pathlib import Path

import pytest
import yaml

import mooring.framework as fw
from mooring.cli import main
from mooring.runtime.registry import Registry
from mooring.simulator import Simulation
from mooring.testing import check_plugin, node, pod

FOLDER = Path(__file__).parent
CONFIG = FOLDER / "config.yaml"


def plugin() -> type[fw.Score]:
    registry = Registry.discover()
    found = registry.get(registry.add_path("prefer_ssd:PreferSsd"))
    assert issubclass(found, fw.Score)
    return found


def test_pods_that_ask_for_it_get_a_fast_disk() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(node("slow"), node("fast", labels={"disk": "ssd"}), node("slower"))
        sim.schedule(*[pod(f"mine-{i}", scheduler="my-scheduler") for i in range(3)])
        assert {sim.node_of(f"mine-{i}") for i in range(3)} == {"fast"}


def test_manifests_are_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--name", "my-scheduler", "--config", str(CONFIG), "--image", "my-scheduler:1.0"]
    assert main(["manifests", *words]) == 0
    assert (FOLDER / "my-scheduler.yaml").read_text() == capsys.readouterr().out


def test_pod_asks_for_a_profile_of_the_configuration() -> None:
    asked = yaml.safe_load((FOLDER / "pod.yaml").read_text())["spec"]["schedulerName"]
    profiles = yaml.safe_load(CONFIG.read_text())["profiles"]
    assert asked in [profile["schedulerName"] for profile in profiles]


def test_image_has_the_plugin_where_it_is_looked_for() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    assert "COPY prefer_ssd.py /opt/plugins/\n" in text
    assert "ENV PYTHONPATH=/opt/plugins\n" in text


def test_prefer_ssd_honours_the_contract() -> None:
    check_plugin(plugin())

"""The files in deploy/ say what `mooring manifests` says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from tests.deploy.rendering import (
    BASE,
    CHART,
    Object,
    by_name,
    kustomize,
    one,
)
from tools.deploy_files import ROOT, generated

import mooring
from mooring import config as cfg
from mooring.cli.manifests.command import objects
from mooring.cli.manifests.options import ManifestOptions, plan_release


@pytest.fixture(scope="module")
def printed() -> list[Object]:
    return objects(plan_release(ManifestOptions(name="mooring")))


def test_generated_files_are_current() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in generated().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "to write them: python -m tools.deploy_files"


def test_kustomize_base_has_no_file_that_is_not_generated() -> None:
    assert set(BASE.iterdir()) == {path for path in generated() if path.parent == BASE}


def test_kustomize_base_is_what_the_command_prints(
    real_programs: None, printed: list[Object]
) -> None:
    assert by_name(without_hash(kustomize())) == by_name(without_checksum(printed))


def without_hash(rendered: list[Object]) -> list[Object]:
    """With the plain name of the ConfigMap in all places."""
    config = one(rendered, "ConfigMap")["metadata"]["name"]
    assert re.fullmatch(r"mooring-[a-z0-9]{10}", config)
    plain: list[Object] = json.loads(json.dumps(rendered).replace(config, "mooring"))
    return plain


def without_checksum(printed: list[Object]) -> list[Object]:
    """Where names have a hash, nothing else has to tell that a configuration was changed."""
    copied: list[Object] = json.loads(json.dumps(printed))
    del one(copied, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    return copied


def test_overlay_that_replaces_the_configuration_rolls_it_out(
    real_programs: None, tmp_path: Path
) -> None:
    shutil.copytree(BASE, tmp_path / "base")
    overlay = tmp_path / "mine"
    overlay.mkdir()
    maker = {
        "name": "mooring",
        "namespace": "kube-system",
        "behavior": "replace",
        "files": ["config.yaml"],
    }
    own = {"resources": ["../base"], "configMapGenerator": [maker]}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(own))
    names = set()
    for text in ("# one\n", "# two\n"):
        (overlay / "config.yaml").write_text(text)
        rendered = kustomize(overlay)
        config = one(rendered, "ConfigMap")
        assert config["data"] == {"config.yaml": text}
        (volume,) = one(rendered, "Deployment")["spec"]["template"]["spec"]["volumes"]
        assert volume["configMap"]["name"] == config["metadata"]["name"]
        names.add(config["metadata"]["name"])
    assert len(names) == 2
    assert all(name.startswith("mooring-") for name in names)


def test_rights_of_rbac_yaml_are_what_the_command_prints(printed: list[Object]) -> None:
    shipped = list(yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text()))
    assert shipped == printed[: len(shipped)]
    assert printed[len(shipped)]["kind"] == "ConfigMap"


def test_configuration_of_the_base_is_valid() -> None:
    config = cfg.load_file(BASE / "config.yaml")
    assert [profile.scheduler_name for profile in config.profiles] == ["mooring"]


def test_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == mooring.__version__

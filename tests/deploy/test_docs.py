"""What the how-to guides say about deploying is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from tests.deploy.rendering import BASE, ROOT, helm, kustomize, one

from mooring import config as cfg

GUIDES = ROOT / "docs" / "howto"


def block(guide: str, kind: str, words: str) -> str:
    """The block of a guide that contains these words."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    (found,) = (
        part for part in re.findall(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S) if words in part
    )
    assert isinstance(found, str)
    return found


def test_overlay_of_the_guide_renders(real_programs: None, tmp_path: Path) -> None:
    overlay: dict[str, Any] = yaml.safe_load(block("run-in-a-cluster.md", "yaml", "behavior"))
    overlay["resources"] = ["base"]
    (tmp_path / "base").symlink_to(BASE)
    (tmp_path / "config.yaml").write_text("# mine\n")
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    rendered = kustomize(tmp_path)
    assert one(rendered, "ConfigMap")["data"]["config.yaml"] == "# mine\n"
    (container,) = one(rendered, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/mooring:0.1.0"


def test_values_of_the_guide_mount_the_plugin(helm_program: None) -> None:
    values = yaml.safe_load(block("put-plugins-into-the-image.md", "yaml", "PYTHONPATH"))
    rendered = helm(values, name="my-scheduler")
    config = cfg.load_text(one(rendered, "ConfigMap")["data"]["config.yaml"])
    (enabled,) = config.profiles[0].plugins.score.enabled
    assert enabled.name == "prefer_ssd:PreferSsd"
    pod = one(rendered, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (path,) = (each["value"] for each in container["env"] if each["name"] == "PYTHONPATH")
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounts["plugins"] == path
    assert "plugins" in {each["name"] for each in pod["volumes"]}


def test_image_of_the_guide_is_that_of_the_example() -> None:
    shown = block("put-plugins-into-the-image.md", "dockerfile", "prefer_ssd")
    built = (ROOT / "examples" / "beside_kube_scheduler" / "Dockerfile").read_text()
    assert built.endswith(shown)

"""The CEL of device selectors says what the CEL of a real API server says.

Rules of a custom resource are evaluated there by the same library as the selectors of devices are
in kube-scheduler.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from tests.controlplane.admin import ApiFailure
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until
from tests.plugins.dynamicresources.cel_expressions import DO_NOT_COMPILE, FAILS, TRUE

GROUP = "cel.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOO_DEAR = "estimated rule cost"  # of a rule before it runs; that of selectors is not


def problems(plane: Plane, rules: Sequence[str]) -> dict[str, str]:
    """What the server says against rules; nothing of those that are true."""
    found = _refused(plane, rules)
    good = [rule for rule in rules if rule not in found]
    return found | (_failed(plane, good) if good else {})


def _refused(plane: Plane, rules: Sequence[str]) -> dict[str, str]:
    """Rules that do not compile, or that fail with their constants alone."""
    try:
        plane.admin.request("POST", f"{DEFINITIONS}?dryRun=All", _definition("tried", rules))
    except ApiFailure as failure:
        parts = re.split(r"x-kubernetes-validations\[(\d+)\]\.rule: ", failure.message)
        found = zip(map(int, parts[1::2]), parts[2::2], strict=True)
        return {rules[number]: text for number, text in found}
    return {}


def _failed(plane: Plane, rules: Sequence[str]) -> dict[str, str]:
    """Rules that are false of an object, or fail."""
    name = f"n{secrets.token_hex(4)}"
    path = f"/apis/{GROUP}/v1/{name}s"
    plane.admin.request("POST", DEFINITIONS, _definition(name, rules))
    try:
        wait_until(lambda: _is_served(plane, path), what=f"{name}s are served")
        plane.admin.request("POST", path, _object(name))
    except ApiFailure as failure:
        parts = failure.message.split("spec: Invalid value: ")
        return {rule: part for rule in rules for part in parts if rule in part}
    finally:
        plane.admin.request("DELETE", f"{DEFINITIONS}/{name}s.{GROUP}")
    return {}


def _is_served(plane: Plane, path: str) -> bool:
    try:
        plane.admin.request("GET", path)
    except ApiFailure as failure:
        if failure.code not in (404, 429):  # not there yet, or not ready
            raise
        return False
    return True


def _object(name: str) -> dict[str, object]:
    kind = name.capitalize()
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "x"}, "spec": {}}


def _definition(name: str, rules: Sequence[str]) -> dict[str, object]:
    validations = [{"rule": rule} for rule in rules]
    spec = {"type": "object", "x-kubernetes-validations": validations}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": f"{name}s", "singular": name, "kind": name.capitalize()},
            "versions": [version],
        },
    }


def test_what_is_true_here_is_true_there(control_plane: Plane) -> None:
    said = problems(control_plane, [*TRUE, "1 == 2"])
    too_dear = [rule for rule, text in said.items() if TOO_DEAR in text]
    assert len(too_dear) < 5
    assert said.keys() - too_dear == {"1 == 2"}


def test_what_fails_here_fails_there_for_the_same_reason(control_plane: Plane) -> None:
    said = problems(control_plane, [rule for rule, _ in FAILS])
    other = {rule: said.get(rule, "true") for rule, why in FAILS if why not in said.get(rule, "")}
    assert other == {}


def test_what_does_not_compile_here_does_not_there(control_plane: Plane) -> None:
    said = _refused(control_plane, [rule for rule, _ in DO_NOT_COMPILE])
    wanted = dict(DO_NOT_COMPILE)
    assert {
        rule for rule, why in wanted.items() if rule not in said or why not in said[rule]
    } == set()

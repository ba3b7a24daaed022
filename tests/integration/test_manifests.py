"""What `mooring manifests` prints, on a real API server: accepted, sufficient, and not too much."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.controlplane.admin import ApiFailure
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import binds
from tests.controlplane.objects import namespace as named
from tests.controlplane.objects import node, pod
from tests.controlplane.waiting import wait_until
from tests.deploy.fixtures import helm_program
from tests.deploy.release import Release, start
from tests.deploy.rendering import BASE, Object, documents, helm, one
from tests.deploy.uses_of_rights import USES
from tests.integration.cluster_reads import wait_until_bound
from tests.integration.mooring_process import ROOT

from mooring.cli.manifests.command import objects
from mooring.cli.manifests.options import ManifestOptions, plan_release
from mooring.cli.manifests.writing import to_yaml

__all__ = ["helm_program"]  # a fixture

EXAMPLE = ROOT / "examples" / "beside_kube_scheduler"
DRY_RUN = ("apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors")
RESTRICTED = {
    f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
}
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
CONFIGURATIONS = {
    "default": "",
    "without-preemption": HEAD
    + "profiles: [{plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}}]",
    "several-profiles": HEAD
    + "profiles: [{schedulerName: packed, pluginConfig: [{name: NodeResourcesFit, args:"
    + " {scoringStrategy: {type: MostAllocated}}}]}, {schedulerName: plain}]",
    "one-replica": HEAD + "leaderElection: {leaderElect: false}",
    "own-plugin": (ROOT / "examples" / "tonodename_scoring" / "config.yaml").read_text(),
}


# --- accepted -----------------------------------------------------------------------------------


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_api_server_accepts_the_manifests_to_the_last_field(
    control_plane: ControlPlane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    configuration: str,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "tonodename_scoring"))
    file = tmp_path / "config.yaml"
    file.write_text(CONFIGURATIONS[configuration])
    given = str(file) if CONFIGURATIONS[configuration] else ""
    made = objects(plan_release(ManifestOptions(name="tried", config=given)))
    said = control_plane.kubectl(*DRY_RUN, "--filename=-", stdin=to_yaml(made, "a comment"))
    assert len(said.splitlines()) == len(made)
    assert all(line.endswith("created (server dry run)") for line in said.splitlines())


def test_restricted_namespace_accepts_the_manifests_and_their_pods(
    control_plane: ControlPlane,
) -> None:
    control_plane.admin.create(named("guarded", RESTRICTED))
    made = objects(plan_release(ManifestOptions(name="tried", namespace="guarded")))
    control_plane.kubectl(*DRY_RUN, "--filename=-", stdin=to_yaml(made))
    template = one(made, "Deployment")["spec"]["template"]
    assert dry_run_pod(control_plane, template) == ""
    template["spec"]["containers"][0]["securityContext"]["capabilities"] = {}
    assert "unrestricted capabilities" in dry_run_pod(control_plane, template)


def dry_run_pod(control_plane: ControlPlane, template: Object) -> str:
    """Why such a pod may not be in the guarded namespace; empty if it may."""
    admin = control_plane.admin
    meta = {**template["metadata"], "name": "tried", "namespace": "guarded"}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
    path = admin.path("Pod", namespace="guarded", query={"dryRun": "All"})
    try:
        admin.request("POST", path, made)
    except ApiFailure as failure:
        return failure.message
    return ""


def test_api_server_accepts_the_kustomize_base(control_plane: ControlPlane) -> None:
    said = control_plane.kubectl(*DRY_RUN, "--kustomize", str(BASE))
    assert "deployment.apps/mooring created (server dry run)" in said


def test_api_server_accepts_the_chart(control_plane: ControlPlane, helm_program: None) -> None:
    made = helm(name="tried")
    said = control_plane.kubectl(*DRY_RUN, "--filename=-", stdin=to_yaml(made))
    assert len(said.splitlines()) == len(made)


# --- beside kube-scheduler ----------------------------------------------------------------------


def test_scheduler_of_the_example_works_beside_kube_scheduler(
    control_plane: ControlPlane, namespace: str
) -> None:
    manifests = EXAMPLE / "my-scheduler.yaml"
    made = documents(manifests.read_text())
    admin = control_plane.admin
    admin.create_many([node("slow"), node("fast", labels={"disk": "ssd"}), node("slower")])
    release = Release(control_plane, "my-scheduler", "kube-system", made)
    control_plane.kubectl("apply", "--filename", str(manifests))
    try:
        control_plane.kube_scheduler()
        template = one(made, "Deployment")["spec"]["template"]
        meta = {**template["metadata"], "name": "replica", "namespace": "kube-system"}
        replica = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
        admin.create(replica)
        admin.create(pod("theirs", namespace=namespace))
        control_plane.kubectl("apply", "-n", namespace, "--filename", str(EXAMPLE / "pod.yaml"))
        start(control_plane, [release], env={"PYTHONPATH": f"{EXAMPLE}{os.pathsep}{ROOT}"})
        wait_until_bound(control_plane, "kube-system", "replica")
        placed = wait_until_bound(control_plane, namespace)
        assert placed["nginx-by-my-scheduler"] == "fast"
        by = {bind.pod: bind.user for bind in binds(control_plane, namespace)}
        assert by == {
            "theirs": "system:kube-scheduler",
            "nginx-by-my-scheduler": "system:serviceaccount:kube-system:my-scheduler",
        }
        assert refusals(release) == 0
    finally:
        control_plane.kubectl("delete", "--wait=false", "--filename", str(manifests))


# --- sufficient, and not too much ---------------------------------------------------------------


class Missing(NamedTuple):
    """A right that is left out, and the use that is not done without it."""

    resource: str
    verbs: tuple[str, ...]
    use: str

    @property
    def label(self) -> str:
        return f"{'-'.join(self.verbs)}-{self.resource.replace('/', '-')}"


LOOKED_AT = (
    *("pods", "nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims"),
    *("replicationcontrollers", "services", "replicasets", "statefulsets"),
    *("poddisruptionbudgets", "csidrivers", "csinodes", "csistoragecapacities"),
    *("storageclasses", "volumeattachments"),
    *("deviceclasses", "resourceclaims", "resourceslices"),
)
TABLE = [
    *(Missing(resource, ("list", "watch"), "pods are bound") for resource in LOOKED_AT),
    Missing("pods/binding", ("create",), "pods are bound"),
    Missing("pods/status", ("patch",), "pods that are refused say why"),
    Missing("pods", ("delete",), "victims make room"),
    Missing("persistentvolumes", ("patch",), "claims get volumes"),
    Missing("persistentvolumeclaims", ("patch",), "provisioners are told the node"),
    Missing("events", ("create",), "what was decided is an Event"),
    Missing("leases", ("create",), "pods are bound"),
    Missing("leases", ("get", "update"), "pods are bound"),
    Missing("tokenreviews", ("create",), "metrics are shown to those who may"),
    Missing("subjectaccessreviews", ("create",), "metrics are shown to those who may"),
]


def test_every_rule_that_is_printed_has_a_use() -> None:
    printed = [
        rule
        for value in objects(plan_release(ManifestOptions(name="s")))
        for rule in value.get("rules", ())
    ]
    used = {(missing.resource, verb) for missing in TABLE for verb in missing.verbs}
    # Allocations are written with exactly these rights in test_devices.py.
    used |= {("resourceclaims/status", "patch"), ("resourceclaims/binding", "patch")}
    for rule in printed:
        (resource,) = rule["resources"]
        assert {(resource, verb) for verb in rule["verbs"]} & used, rule
    granted = {(rule["resources"][0], verb) for rule in printed for verb in rule["verbs"]}
    assert used <= granted


def test_every_use_is_done_with_exactly_these_rights(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create(node("roomy"))
    release = Release(control_plane, "complete", namespace)
    control_plane.kubectl("apply", "--filename=-", stdin=to_yaml(release.objects))
    for title, use in enumerate(USES.values()):
        use.begin(release, f"use-{title}")
    start(control_plane, [release])
    for title, (name, use) in enumerate(USES.items()):
        wait_until(done(release, use.is_done, f"use-{title}"), what=name)
    assert release.mooring is not None
    assert release.mooring.get("/readyz").code == 200
    assert refusals(release) == 0


def test_without_any_one_rule_a_use_is_not_done_until_it_is_back(
    control_plane: ControlPlane,
) -> None:
    control_plane.admin.create(node("roomy"))
    releases = {missing: deployed(control_plane, missing.label, missing) for missing in TABLE}
    for missing, release in releases.items():
        USES[missing.use].begin(release, "without")
    start(control_plane, list(releases.values()))
    for missing, release in releases.items():
        wait_until(was_refused(release, missing), 60, what=f"{missing.label} is missed")
        assert not USES[missing.use].is_done(release, "without"), missing
    for missing, release in releases.items():
        control_plane.admin.replace(release.rule_of(missing.resource, missing.verbs[0])[0])
        USES[missing.use].begin(release, "with")
    for missing, release in releases.items():
        use = USES[missing.use]
        wait_until(done(release, use.is_done, "with"), 60, what=f"{missing.label}: {missing.use}")


def test_without_its_binding_client_certificates_are_not_known(control_plane: ControlPlane) -> None:
    release = deployed(control_plane, "strangers")
    name, kind = f"{release.name}-client-ca", "rbac.authorization.k8s.io/v1/RoleBinding"
    control_plane.admin.delete(kind, name, "kube-system")
    start(control_plane, [release])
    wait_until(done(release, USES["metrics are shown to those who may"].is_done), what="it serves")
    wait_until(
        lambda: "could not look up the client CA" in release.log.read_text(), what="it tried"
    )
    assert not USES["client certificates are known"].is_done(release, "")


def deployed(control_plane: ControlPlane, name: str, missing: Missing | None = None) -> Release:
    """What makes a scheduler somebody, in a namespace of its name; one right may be missing."""
    control_plane.admin.create(named(name))
    release = Release(control_plane, name, name)
    control_plane.admin.create_many(
        value if missing is None else lessened(value, missing) for value in release.rights
    )
    return release


def lessened(value: Object, missing: Missing) -> Object:
    """The object as it is, or without a right that it would grant."""
    rules: list[dict[str, Any]] = []
    for rule in value.get("rules", ()):
        taken = missing.verbs if missing.resource in rule["resources"] else ()
        if verbs := [verb for verb in rule["verbs"] if verb not in taken]:
            rules.append({**rule, "verbs": verbs})
    return {**value, "rules": rules} if "rules" in value else value


def done(
    release: Release, is_done: Callable[[Release, str], bool], title: str = ""
) -> Callable[[], bool]:
    return lambda: is_done(release, title)


def was_refused(release: Release, missing: Missing) -> Callable[[], bool]:
    """Whether it has tried: metrics count refusals, and are refused themselves without reviews."""
    asks = missing.resource in ("tokenreviews", "subjectaccessreviews")

    def has_tried() -> bool:
        return release.scrape().code in (401, 403, 500) if asks else refusals(release) > 0

    return has_tried


def refusals(release: Release) -> int:
    lines = release.scrape().text.splitlines()
    counted = [line for line in lines if line.startswith("rest_client_requests_total{")]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in counted if 'code="403"' in line)

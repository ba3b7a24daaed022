"""Further commands of kubectl: what works, and what says clearly that it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.apiserver.kubectl import EmbeddedCluster, Kubectl

WEB = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {color: red}
"""
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: at-most-five}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations: [{expression: object.spec.replicas <= 5}]
"""
SIMULATED = "mooring simulates pods and runs no containers"


@pytest.fixture(scope="module")
def cluster(
    real_programs: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedCluster]:
    running = EmbeddedCluster(tmp_path_factory.mktemp("embedded"))
    running.kubectl("run", "pod", "--image=busybox")
    running.kubectl("wait", "--for=condition=Ready", "pod/pod", "--timeout=60s")
    yield running
    running.close()


@pytest.fixture
def kubectl(cluster: EmbeddedCluster) -> Kubectl:
    return cluster.kubectl


def test_replaces(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=WEB)
    said = kubectl("replace", "-f", "-", stdin=WEB.replace("red", "blue"))
    assert said == "configmap/web replaced\n"
    assert kubectl("get", "cm", "web", "-o", "jsonpath={.data.color}") == "blue"
    said = kubectl("replace", "--force", "-f", "-", stdin=WEB)
    assert said == 'configmap "web" deleted from default namespace\nconfigmap/web replaced\n'


def test_edits_with_an_editor(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl("apply", "-f", "-", stdin=WEB.replace("web", "edited"))
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/red/green/")
    assert kubectl("edit", "cm", "edited") == "configmap/edited edited\n"
    assert kubectl("get", "cm", "edited", "-o", "jsonpath={.data.color}") == "green"


def test_shows_the_history_of_a_rollout_and_restarts_it(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "api", "--image=api:1")
    kubectl("rollout", "status", "deployment/api", "--timeout=60s")
    assert kubectl("rollout", "restart", "deployment/api") == "deployment.apps/api restarted\n"
    kubectl("rollout", "status", "deployment/api", "--timeout=60s")
    history = kubectl("rollout", "history", "deployment/api").splitlines()
    assert [line.split()[0] for line in history[1:4]] == ["REVISION", "1", "2"]
    shown = kubectl("rollout", "history", "deployment/api", "--revision=2")
    assert "kubectl.kubernetes.io/restartedAt" in shown


def test_applies_a_kustomization(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "kustomization.yaml").write_text("namePrefix: my-\nresources: [web.yaml]\n")
    assert kubectl("apply", "-k", str(tmp_path)) == "configmap/my-web created\n"
    assert kubectl("delete", "-k", str(tmp_path)).startswith('configmap "my-web" deleted')


def test_says_where_the_cluster_is(kubectl: Kubectl) -> None:
    assert "Kubernetes control plane" in kubectl("cluster-info")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("logs pod", f"{SIMULATED}: there are no logs"),
        ("exec pod -- ls", f"{SIMULATED}: no command can be executed"),
        ("attach pod", f"{SIMULATED}: there is nothing to attach to"),
        ("port-forward pod/pod 8080:80", f"{SIMULATED}: no port can be forwarded"),
        ("cp pod:/etc/hosts hosts", f"{SIMULATED}: no command can be executed, and nothing copied"),
        ("run it --image=busybox -it --rm", f"{SIMULATED}: there is nothing to attach to"),
        ("debug pod --image=busybox -it", f"{SIMULATED}: there is nothing to attach to"),
        ("get --raw /api/v1/namespaces/default/pods/pod/proxy/", "requests can't be passed on"),
        ("top nodes", "Metrics API not available"),
        ("get nothings", "the server doesn't have a resource type"),
    ],
)
def test_says_clearly_what_is_not_simulated(
    kubectl: Kubectl, command: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = kubectl.run(*command.split())
    assert words in said.out + said.err
    assert "could not find the requested resource" not in said.err


@pytest.mark.parametrize(
    ("command", "warning"),
    [
        ("create ingress web --rule=web/*=web:80", "mooring simulates no network"),
        ("create clusterrole r --verb=get --resource=pods", "mooring enforces no permissions"),
        ("create -f policy.yaml", "mooring evaluates no admission policies"),
        ("autoscale deployment scaled --max=3", "mooring simulates no metrics"),
    ],
)
def test_warns_of_what_is_only_stored(
    kubectl: Kubectl, command: str, warning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    if "scaled" in command:
        kubectl("create", "deployment", "scaled", "--image=x")
    said = kubectl.run(*command.split())
    assert said.code == 0, said.err
    assert warning in said.err

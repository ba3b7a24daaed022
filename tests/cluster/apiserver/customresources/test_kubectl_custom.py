"""The real kubectl with custom resources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.apiserver.customresources.manifests import ELASTIC_QUOTA, POD_GROUP
from tests.cluster.apiserver.kubectl import EmbeddedCluster, Kubectl

TRAIN = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 3, minResources: {cpu: 4, memory: 1Gi}}
"""
QUOTA = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: team}
spec: {max: {cpu: 8}, min: {cpu: 4}}
"""


@pytest.fixture(scope="module")
def kubectl(real_programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    running = EmbeddedCluster(tmp_path_factory.mktemp("custom"), bare=True)
    running.kubectl("apply", "--filename=-", stdin=f"{POD_GROUP}---\n{ELASTIC_QUOTA}")
    running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
    yield running.kubectl
    running.close()


def test_prints_columns(kubectl: Kubectl) -> None:
    kubectl("apply", "--filename=-", stdin=f"{TRAIN}---\n{QUOTA}")
    status = '{"status":{"phase":"Running","running":2}}'
    kubectl("patch", "pg", "train", "--type=merge", "--subresource=status", f"--patch={status}")
    header, row = kubectl("get", "pg").splitlines()
    assert header.split() == ["NAME", "PHASE", "MINMEMBER", "AGE"]
    assert row.split()[:3] == ["train", "Running", "3"]
    assert kubectl("get", "pgs", "--output=wide").split()[3] == "RUNNING"
    assert kubectl("get", "eq", "--no-headers").split()[:2] == ["team", '{"cpu":8}']


def test_explains_and_lists_the_kind(kubectl: Kubectl) -> None:
    said = kubectl("explain", "podgroup.spec.minMember")
    assert "FIELD: minMember <integer>" in said
    assert "how many pods" in said
    assert "pg,pgs" in kubectl("api-resources", "--api-group=scheduling.x-k8s.io")


def test_reports_mistakes(kubectl: Kubectl) -> None:
    said = kubectl.run("apply", "--filename=-", stdin=TRAIN.replace("minMember", "minMembers"))
    assert 'strict decoding error: unknown field "spec.minMembers"' in said.err
    said = kubectl.run("apply", "--filename=-", stdin=TRAIN.replace("minMember: 3", "minMember: 0"))
    assert "spec.minMember in body should be greater than or equal to 1" in said.err


def test_applies_again_and_diffs(kubectl: Kubectl) -> None:
    kubectl("apply", "--filename=-", stdin=TRAIN)
    changed = TRAIN.replace("minMember: 3", "minMember: 5")
    said = kubectl.run("diff", "--filename=-", stdin=changed)
    assert (said.code, "+  minMember: 5" in said.out) == (1, True)
    assert kubectl("apply", "--filename=-", stdin=changed).endswith("train configured\n")
    served = kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=TRAIN)
    assert served.endswith("train serverside-applied\n")


def test_deletes_the_objects_of_a_deleted_definition(kubectl: Kubectl) -> None:
    kubectl("apply", "--filename=-", stdin=QUOTA)
    kubectl("delete", "crd", "elasticquotas.scheduling.x-k8s.io", "--timeout=20s")
    said = kubectl.run("get", "eq")
    assert "the server could not find the requested resource" in said.err

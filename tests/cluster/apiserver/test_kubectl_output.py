"""The same commands, one after the other, on the real server and on ours: the same words."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cluster.apiserver.kubectl import EmbeddedCluster, Kubectl, Output
from tests.controlplane.cluster import ControlPlane

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: words-1}
status: {allocatable: {cpu: "4", pods: "110"}}
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""

# Each with what it reads from its standard input. There are no controllers and no kubelets. Patches
# that make an object unreadable are left out: the real server quotes what it had made of them.
SCRIPT: list[tuple[str, str]] = [
    ("create namespace words", ""),
    ("create namespace words", ""),
    ("create namespace Words", ""),
    ("get pods -n words", ""),
    ("get pod nobody -n words", ""),
    ("get nothings", ""),
    ("get deploy,rs,pods -n words", ""),
    ("run one --image=busybox -n words --labels=tier=a", ""),
    ("run one --image=busybox -n words", ""),
    ("run Bad_Name --image=busybox -n words", ""),
    ("run two --image=busybox -n nowhere", ""),
    ("get pods -n words --show-labels", ""),
    ("get pods -n words -o wide", ""),
    ("get pods -n words -L tier", ""),
    ("get pods -n words --sort-by=.metadata.name", ""),
    ("get pods -n words -l tier=b", ""),
    ("get pods -n words --field-selector=status.phase=Pending", ""),
    ("get pods -n words --field-selector=spec.bogus=1", ""),
    ("get pods -n words -l a=b=c", ""),
    ("get pod one -n words -o jsonpath={.spec}", ""),
    ("label pod one tier=a -n words", ""),
    ("label pod one tier=b -n words", ""),
    ("label pod one tier=b --overwrite -n words", ""),
    ("label pod one tier- -n words", ""),
    ("label pod one bad/key/x=b -n words", ""),
    ("label pod one x=not!good -n words", ""),
    ("annotate pod one note=hi -n words", ""),
    ("annotate pod one note- -n words", ""),
    ("create deployment web --image=web:1 --replicas=2 -n words", ""),
    ("create deployment web --image=web:1 -n words", ""),
    ("get deploy web -n words -o wide", ""),
    ("scale deploy web --replicas=3 -n words", ""),
    ("scale deploy web --replicas=3 --current-replicas=5 -n words", ""),
    ("scale deploy nobody --replicas=3 -n words", ""),
    ("set image deploy/web web=web:2 -n words", ""),
    ("set image deploy/web web=web:2 -n words", ""),
    ("set image deploy/web nobody=web:2 -n words", ""),
    ("set resources deploy/web --requests=cpu=100m -n words", ""),
    ("set env deploy/web A=1 -n words", ""),
    ("get deploy web -n words -o jsonpath={.spec}", ""),
    ("rollout pause deploy/web -n words", ""),
    ("rollout pause deploy/web -n words", ""),
    ("rollout resume deploy/web -n words", ""),
    ("rollout restart deploy/web -n words", ""),
    ("expose deploy web --port=80 -n words", ""),
    ("create configmap settings --from-literal=a=1 -n words", ""),
    ("create secret generic keys --from-literal=a=1 -n words", ""),
    ("create serviceaccount robot -n words", ""),
    ("create job once --image=busybox -n words", ""),
    ("create cronjob often --image=busybox --schedule=@hourly -n words", ""),
    ("create quota quota --hard=pods=5 -n words", ""),
    ("create priorityclass words --value=5", ""),
    ("create role reader --verb=get --resource=pods -n words", ""),
    ("create rolebinding readers --role=reader --user=ann -n words", ""),
    ("create poddisruptionbudget pdb --selector=app=x --min-available=1 -n words", ""),
    ("get all,cm,secret,sa,quota,pdb -n words", ""),
    ("patch cm settings -n words -p {\"data\":{\"b\":\"2\"}}", ""),
    ("patch cm settings -n words --type=json -p [{\"op\":\"remove\",\"path\":\"/data/a\"}]", ""),
    ("patch cm settings -n words --type=json -p [{\"op\":\"remove\",\"path\":\"/data/z\"}]", ""),
    ("patch cm settings -n words -p {\"dat\":{\"b\":\"2\"}}", ""),
    ("get cm settings -n words -o jsonpath={.data}", ""),
    ("delete deploy web -n words", ""),
    ("apply -n words -f -", WEB),
    ("apply -n words -f -", WEB),
    ("apply -n words -f -", WEB.replace("web:1", "web:2")),
    ("apply -n words -f -", WEB.replace("replicas: 2", "replicas: -2")),
    ("apply -n words -f -", WEB.replace("app: web}}\n  template", "app: wep}}\n  template")),
    ("apply -n words -f -", WEB.replace("kind: Deployment", "kind: Employment")),
    ("diff -n words -f -", WEB.replace("web:1", "web:2")),
    ("apply --server-side -n words -f -", WEB),
    ("apply --server-side -n words -f -", WEB),
    ("apply --server-side --field-manager=me -n words -f -", WEB.replace("web:1", "web:3")),
    ("apply --server-side --field-manager=me --force-conflicts -n words -f -",
     WEB.replace("web:1", "web:3")),
    ("apply --server-side -n words -f -", WEB.replace("image:", "imag:")),
    ("scale deploy web --replicas=4 -n words", ""),
    ("apply --server-side -n words -f -", WEB.replace("web:1", "web:3")),
    ("label deploy web app=wep --overwrite -n words", ""),
    ("apply --server-side --force-conflicts -n words -f -", WEB.replace("web:1", "web:3")),
    ('get deploy web -n words -o jsonpath={.metadata.managedFields[?(@.manager=="kubectl")]}', ""),
    ('get deploy web -n words -o jsonpath={.metadata.managedFields[?(@.manager=="me")]}', ""),
    ("apply --server-side --dry-run=server -n words -f -", WEB.replace("web:1", "web:4")),
    ("get deploy web -n words -o jsonpath={.spec}", ""),
    ("apply -n words -f -", BUDGET),
    ("get pdb -n words", ""),
    ("create -f -", NODE),
    ("create -f -", NODE),
    ("taint node words-1 gpu=yes:NoSchedule", ""),
    ("taint node words-1 gpu=yes:NoSchedule", ""),
    ("taint node words-1 gpu=no:NoSchedule --overwrite", ""),
    ("taint node words-1 gpu=no:Sometimes", ""),
    ("cordon words-1", ""),
    ("cordon words-1", ""),
    ("get nodes words-1 -o wide", ""),
    ("get node words-1 -o jsonpath={.spec.taints}", ""),
    ("uncordon words-1", ""),
    ("taint node words-1 gpu-", ""),
    ("taint node words-1 gpu-", ""),
    ("drain words-1 --timeout=5s", ""),
    ("auth can-i create pods", ""),
    ("api-resources --api-group=apps", ""),
    ("get --raw /healthz", ""),
    ("delete pod one -n words", ""),
    ("delete pod one -n words", ""),
    ("delete deploy,svc --all -n words", ""),
    ("delete pod -l tier=z -n words", ""),
    ("delete node words-1", ""),
    ("delete namespace default", ""),
]  # fmt: skip

_VARYING = [
    (r"Warning: mooring [^\n]*\n", ""),  # what is not simulated
    (r"\b\d+(s|m\d*s?)\b", "AGE"),
    (r"10\.96\.\d+\.\d+", "CLUSTER-IP"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r'resourceVersion(\\*)": ?\\*"\d+', "VERSION"),
    (r" +", " "),
]


def test_says_the_same_as_the_real_server(
    real_server: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # One test: several would be several processes' tests, each of which runs all commands.
    folder = tmp_path_factory.mktemp("real")
    real = Kubectl(real_server.kubeconfig_for(real_server.admin_user), folder)
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("ours"), bare=True)
    try:
        with ThreadPoolExecutor(2) as threads:
            theirs, ours = threads.map(_said_by, (real, cluster.kubectl))
    finally:
        cluster.close()
    said = zip(SCRIPT, ours, theirs, strict=True)
    different = [(command, mine, right) for (command, _), mine, right in said if mine != right]
    assert different == []


def _said_by(kubectl: Kubectl) -> list[Output]:
    found: list[Output] = []
    for command, stdin in SCRIPT:
        said = kubectl.run(*command.split(" "), stdin=stdin)
        found.append(Output(_plain(said.out), _plain(said.err), said.code))
    return found


def _plain(text: str) -> str:
    for pattern, word in _VARYING:
        text = re.sub(pattern, word, text)
    return text

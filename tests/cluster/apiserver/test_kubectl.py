"""The real kubectl against an embedded cluster: what people do with a cluster works as ever."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from tests.cluster.apiserver.kubectl import EmbeddedCluster, Kubectl
from tests.controlplane.admin import Object
from tests.controlplane.waiting import wait_until

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: nginx
        image: nginx:1
        resources: {requests: {cpu: 100m}}
"""


@pytest.fixture(scope="module")
def cluster(
    real_programs: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedCluster]:
    running = EmbeddedCluster(tmp_path_factory.mktemp("embedded"))
    yield running
    running.close()


@pytest.fixture
def kubectl(cluster: EmbeddedCluster) -> Kubectl:
    return cluster.kubectl


@pytest.fixture
def space(kubectl: Kubectl, request: pytest.FixtureRequest) -> str:
    """A namespace for one test, as an argument."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:50].rstrip("-")
    assert kubectl("create", "namespace", name) == f"namespace/{name} created\n"
    return f"--namespace={name}"


def got(kubectl: Kubectl, *arguments: str) -> Object:
    found: Object = json.loads(kubectl("get", *arguments, "--output=json"))
    return found


def roll_out(kubectl: Kubectl, space: str, *arguments: str) -> None:
    said = kubectl("rollout", "status", *arguments, "--timeout=60s", space)
    assert said.endswith("successfully rolled out\n")


# --- looking --------------------------------------------------------------------------------------


def test_says_which_version_it_is(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36.0+mooring" in kubectl("version")


def test_lists_nodes(kubectl: Kubectl) -> None:
    header, *nodes = kubectl("get", "nodes").splitlines()
    assert header.split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [line.split()[:3] for line in nodes] == [
        [f"node-{number}", "Ready", "<none>"] for number in range(3)
    ]
    assert "INTERNAL-IP" in kubectl("get", "nodes", "--output=wide")


def test_lists_everything_that_can_be_asked_for(kubectl: Kubectl) -> None:
    listed = {tuple(line.split()) for line in kubectl("api-resources").splitlines()}
    assert {("pods", "po", "v1", "true", "Pod"), ("nodes", "no", "v1", "false", "Node")} <= listed
    names = kubectl("api-resources", "--output=name", "--categories=all").split()
    assert {"pods", "deployments.apps", "services", "jobs.batch"} <= set(names)


def test_shows_objects_in_every_format(kubectl: Kubectl, space: str) -> None:
    kubectl("run", "solo", "--image=busybox", space)
    kubectl("wait", "pod/solo", "--for=condition=Ready", "--timeout=60s", space)
    header, row = kubectl("get", "pods", space).splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["solo", "1/1", "Running", "0"]
    header, row = kubectl("get", "pods", "--output=wide", space).splitlines()
    assert "NODE" in header
    assert "node-" in row
    assert kubectl("get", "pods", "--output=name", space) == "pod/solo\n"
    assert yaml.safe_load(kubectl("get", "pod", "solo", "--output=yaml", space)) == got(
        kubectl, "pod", "solo", space
    )
    address = kubectl("get", "pod", "solo", "--output=jsonpath={.status.podIP}", space)
    assert address.startswith("10.")
    own = "--output=custom-columns=N:.metadata.name,I:.spec.containers[*].image"
    assert kubectl("get", "pods", own, space).split() == ["N", "I", "solo", "busybox"]


def test_selects_by_label_and_field(kubectl: Kubectl, space: str) -> None:
    kubectl("run", "one", "--image=i", "--labels=tier=a", space)
    kubectl("run", "two", "--image=i", "--labels=tier=b", space)
    assert kubectl("get", "pods", "--selector=tier=a", "--output=name", space) == "pod/one\n"
    assert (
        kubectl("get", "pods", "--selector=tier notin (a)", "--output=name", space) == "pod/two\n"
    )
    predicate = kubectl("get", "pods", "--field-selector=metadata.name=two", "--output=name", space)
    assert predicate == "pod/two\n"
    kubectl("wait", "pod/one", "--for=condition=Ready", "--timeout=60s", space)
    node = got(kubectl, "pod", "one", space)["spec"]["nodeName"]
    here = kubectl("get", "pods", f"--field-selector=spec.nodeName={node}", "--output=name", space)
    assert "pod/one" in here
    everywhere = kubectl("get", "pods", "--all-namespaces", "--selector=tier")
    assert everywhere.split()[0] == "NAMESPACE"
    assert len(everywhere.splitlines()) == 3


def test_watches(kubectl: Kubectl, space: str) -> None:
    kubectl("run", "first", "--image=busybox", space)
    with kubectl.watching("get", "pods", "--output=wide", space) as pods:
        pods.shows("first")  # it has begun
        kubectl("run", "solo", "--image=busybox", space)
        pods.shows("solo", "0/1", "Pending")
        pods.shows("solo", "1/1", "Running")
        kubectl("delete", "pod", "solo", space)
        pods.shows("solo", "1/1", "Terminating")


def test_describes_pods_and_nodes(kubectl: Kubectl, space: str) -> None:
    kubectl("run", "solo", "--image=busybox", space)
    kubectl("wait", "pod/solo", "--for=condition=Ready", "--timeout=60s", space)
    pod = kubectl("describe", "pod", "solo", space)
    assert "Status:       Running" in pod
    assert "Image:          busybox" in pod
    assert "Started" in pod  # an event
    node = got(kubectl, "pod", "solo", space)["spec"]["nodeName"]
    described = kubectl("describe", "node", node)
    assert "Ready            True" in described
    assert "solo" in described.partition("Non-terminated Pods:")[2]


def test_shows_when_a_node_was_last_heard_of(kubectl: Kubectl) -> None:
    wait_until(
        lambda: "HolderIdentity:  node-0" in kubectl("describe", "node", "node-0"),
        what="node-0 has a lease",
    )
    described = kubectl("describe", "node", "node-0")
    assert "Failed to get lease" not in described
    assert "RenewTime:       " in described
    assert len(kubectl("get", "leases", "-n", "kube-node-lease", "-o", "name").split()) == 3


def test_lists_events(kubectl: Kubectl, space: str) -> None:
    kubectl("run", "solo", "--image=busybox", space)
    kubectl("wait", "pod/solo", "--for=condition=Ready", "--timeout=60s", space)
    header, *events = kubectl("get", "events", space).splitlines()
    assert header.split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert any(line.split()[1:4] == ["Normal", "Started", "pod/solo"] for line in events)
    assert "Started" in kubectl("events", "--for=pod/solo", space)


def test_lists_several_kinds_and_all_namespaces_at_once(kubectl: Kubectl, space: str) -> None:
    kubectl("create", "deployment", "web", "--image=web", space)
    roll_out(kubectl, space, "deployment/web")
    found = kubectl("get", "po,no,deploy", "-o", "name", space).split()
    assert {"node/node-0", "deployment.apps/web"} <= set(found)
    assert sum(name.startswith("pod/web-") for name in found) == 1
    name = space.removeprefix("--namespace=")
    for kind, row in (("pods", "web-"), ("deploy", "web "), ("events", "pod/web-")):
        header, *lines = kubectl("get", kind, "-A", "-o", "wide").splitlines()
        assert header.startswith("NAMESPACE")
        assert any(line.startswith(name) and row in line for line in lines), lines


def test_finds_the_fields_of_a_kind(kubectl: Kubectl) -> None:
    assert "FIELD: nodeName <string>" in kubectl("explain", "pod.spec.nodeName")
    assert "containers" in kubectl("explain", "deployment.spec.template.spec", "--recursive")


def test_says_who_may_do_what(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert "system:masters" in kubectl("auth", "whoami")


def test_takes_people_for_whom_they_say(kubectl: Kubectl) -> None:
    shown = kubectl("auth", "whoami", "--as=bob", "--as-group=ops", "--as-group=dev")
    assert "Username    bob\n" in shown
    assert "[ops dev system:authenticated]" in shown
    assert "system:masters" not in shown


def test_creates_tokens_of_service_accounts(kubectl: Kubectl, space: str) -> None:
    kubectl("create", "serviceaccount", "robot", space)
    token = kubectl("create", "token", "robot", "--duration=20m", space).strip()
    shown = kubectl("auth", "whoami", f"--token={token}", "-o", "jsonpath={.status.userInfo}")
    account = f"{space.removeprefix('--namespace=')}:robot"
    assert json.loads(shown)["username"] == f"system:serviceaccount:{account}"
    assert (
        'serviceaccounts "absent" not found' in kubectl.run("create", "token", "absent", space).err
    )


# --- workloads ------------------------------------------------------------------------------------


def test_creates_a_deployment_and_rolls_out_a_change(kubectl: Kubectl, space: str) -> None:
    made = kubectl("create", "deployment", "api", "--image=api:1", "--replicas=2", space)
    assert made == "deployment.apps/api created\n"
    roll_out(kubectl, space, "deployment/api")
    assert kubectl("set", "image", "deployment/api", "api=api:2", space) == (
        "deployment.apps/api image updated\n"
    )
    roll_out(kubectl, space, "deployment/api")
    pods = got(kubectl, "pods", space)["items"]  # some of the old ones may be on their way out
    staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    assert {pod["spec"]["containers"][0]["image"] for pod in staying} == {"api:2"}
    assert kubectl("scale", "deployment/api", "--replicas=4", space) == (
        "deployment.apps/api scaled\n"
    )
    roll_out(kubectl, space, "deployment/api")
    row = kubectl("get", "deployment", "api", "--no-headers", space).split()
    assert row[:4] == ["api", "4/4", "4", "4"]
    assert kubectl("rollout", "undo", "deployment/api", space) == (
        "deployment.apps/api rolled back\n"
    )
    roll_out(kubectl, space, "deployment/api")
    assert "deployment.apps/api" in kubectl("get", "all", space)


def test_applies_a_file_and_its_changes(kubectl: Kubectl, space: str) -> None:
    apply = ("apply", "--filename=-", space)
    assert kubectl(*apply, stdin=WEB) == "deployment.apps/web created\n"
    roll_out(kubectl, space, "deployment/web")
    assert kubectl(*apply, stdin=WEB) == "deployment.apps/web unchanged\n"
    assert kubectl("diff", "--filename=-", space, stdin=WEB) == ""
    changed = WEB.replace("nginx:1", "nginx:2").replace(
        "{app: web}\nspec", "{app: web, tier: a}\nspec"
    )
    assert kubectl(*apply, stdin=changed) == "deployment.apps/web configured\n"
    found = got(kubectl, "deployment", "web", space)
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert found["metadata"]["labels"] == {"app": "web", "tier": "a"}
    kubectl(*apply, stdin=WEB)
    assert got(kubectl, "deployment", "web", space)["metadata"]["labels"] == {"app": "web"}


def test_applies_on_the_server(kubectl: Kubectl, space: str) -> None:
    apply = ("apply", "--server-side", "--filename=-", space)
    applied = "deployment.apps/web serverside-applied\n"
    assert kubectl(*apply, stdin=WEB) == applied
    before = got(kubectl, "deployment", "web", space)
    roll_out(kubectl, space, "deployment/web")
    assert kubectl(*apply, stdin=WEB) == applied
    after = got(kubectl, "deployment", "web", space)
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    other = WEB.replace("replicas: 2", "replicas: 3")
    said = kubectl.run(*apply, "--field-manager=other", stdin=other)
    assert said.err.startswith(
        'error: Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas\n'
    )
    assert kubectl(*apply, "--field-manager=other", "--force-conflicts", stdin=other) == applied
    assert got(kubectl, "deployment", "web", space)["spec"]["replicas"] == 3
    without = WEB.replace("  replicas: 2\n", "")
    assert kubectl(*apply, stdin=without) == applied
    assert got(kubectl, "deployment", "web", space)["spec"]["replicas"] == 3


def test_goes_over_to_applying_on_the_server(kubectl: Kubectl, space: str) -> None:
    kubectl("apply", "--filename=-", space, stdin=WEB)
    changed = WEB.replace("replicas: 2", "replicas: 1")
    kubectl("apply", "--server-side", "--filename=-", space, stdin=changed)
    found = got(kubectl, "deployment", "web", "--show-managed-fields", space)
    assert found["spec"]["replicas"] == 1
    managers = {entry["manager"] for entry in found["metadata"]["managedFields"]}
    assert "kubectl-client-side-apply" not in managers
    assert "kubectl" in managers


def test_names_who_else_sets_a_field(kubectl: Kubectl, space: str) -> None:
    kubectl("create", "--filename=-", space, stdin=WEB)
    apply = ("apply", "--server-side", "--filename=-", space)
    said = kubectl.run(*apply, stdin=WEB.replace("replicas: 2", "replicas: 1"))
    assert 'conflict with "kubectl-create" using apps/v1: .spec.replicas' in said.err


def test_runs_jobs_and_the_like(kubectl: Kubectl, space: str) -> None:
    kubectl("create", "job", "once", "--image=busybox", space)
    assert kubectl("get", "jobs", "--output=name", space) == "job.batch/once\n"
    kubectl("create", "configmap", "settings", "--from-literal=a=1", space)
    patch = ("patch", "configmap", "settings", space, "--patch")
    kubectl(*patch, '{"data":{"b":"2"}}')
    kubectl(*patch, '[{"op":"remove","path":"/data/a"}]', "--type=json")
    kubectl(*patch, '{"data":{"c":"3"}}', "--type=merge")
    assert got(kubectl, "configmap", "settings", space)["data"] == {"b": "2", "c": "3"}
    kubectl("create", "deployment", "web", "--image=web", "--port=80", space)
    assert kubectl("expose", "deployment", "web", "--port=80", space) == "service/web exposed\n"
    assert kubectl("get", "service", "web", "--no-headers", space).split()[1] == "ClusterIP"


# --- nodes and labels -----------------------------------------------------------------------------


def test_labels_and_annotates(kubectl: Kubectl, space: str) -> None:
    kubectl("run", "solo", "--image=busybox", space)
    assert kubectl("label", "pod", "solo", "tier=a", space) == "pod/solo labeled\n"
    assert kubectl("annotate", "pod", "solo", "note=hi", space) == "pod/solo annotated\n"
    meta = got(kubectl, "pod", "solo", space)["metadata"]
    assert (meta["labels"]["tier"], meta["annotations"]["note"]) == ("a", "hi")
    assert kubectl.run("label", "pod", "solo", "tier=b", space).err == (
        "error: 'tier' already has a value (a), and --overwrite is false\n"
    )
    kubectl("label", "pod", "solo", "tier-", space)
    assert "tier" not in got(kubectl, "pod", "solo", space)["metadata"]["labels"]


def test_taints_nodes(kubectl: Kubectl) -> None:
    assert kubectl("taint", "node", "node-0", "gpu=yes:NoSchedule") == "node/node-0 tainted\n"
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    assert got(kubectl, "node", "node-0")["spec"]["taints"] == [taint]
    assert kubectl("taint", "node", "node-0", "gpu-") == "node/node-0 untainted\n"
    assert "taints" not in got(kubectl, "node", "node-0")["spec"]


def test_cordons_and_drains_a_node(kubectl: Kubectl, space: str) -> None:
    kubectl("create", "deployment", "web", "--image=web", "--replicas=3", space)
    roll_out(kubectl, space, "deployment/web")
    assert kubectl("cordon", "node-1") == "node/node-1 cordoned\n"
    assert "Ready,SchedulingDisabled" in kubectl("get", "node", "node-1")
    mine = (space, "--field-selector=spec.nodeName=node-1", "--output=name")
    [pod] = kubectl("get", "pods", *mine).split()
    said = kubectl.run("drain", "node-1", "--force", "--timeout=60s")
    assert said.code == 0, said
    assert "node/node-1 drained\n" in said.out
    assert f"{pod} evicted\n" in said.out
    assert kubectl("get", "pods", *mine) == ""
    roll_out(kubectl, space, "deployment/web")
    assert kubectl("uncordon", "node-1") == "node/node-1 uncordoned\n"


# --- the end --------------------------------------------------------------------------------------


def test_deletes_and_waits_until_it_is_done(kubectl: Kubectl, space: str) -> None:
    kubectl("create", "deployment", "web", "--image=web", "--replicas=2", space)
    roll_out(kubectl, space, "deployment/web")
    name = space.removeprefix("--namespace=")
    assert kubectl("delete", "pod", "--selector=app=web", space).count("deleted from") == 2
    assert kubectl("delete", "deployment", "web", space) == (
        f'deployment.apps "web" deleted from {name} namespace\n'
    )
    assert kubectl("delete", "namespace", name, "--timeout=60s") == f'namespace "{name}" deleted\n'
    assert kubectl.run("get", "namespace", name).err == (
        f'Error from server (NotFound): namespaces "{name}" not found\n'
    )


def test_deletes_what_a_file_names(kubectl: Kubectl, space: str) -> None:
    kubectl("apply", "--filename=-", space, stdin=WEB)
    assert "deleted" in kubectl("delete", "--filename=-", space, stdin=WEB)
    assert kubectl.run("get", "deployment", "web", space).code == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("image:", "imag:"),
            'Error from server (BadRequest): error when creating "STDIN": Deployment in version '
            '"v1" cannot be handled as a Deployment: strict decoding error: unknown field '
            '"spec.template.spec.containers[0].imag"\n',
        ),
        (
            ("replicas: 2", "replicas: x"),
            'Error from server (BadRequest): error when creating "STDIN": Deployment in version '
            '"v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct '
            "field DeploymentSpec.spec.replicas of type int32\n",
        ),
        (
            ("matchLabels: {app: web}", "matchLabels: {app: wep}"),
            'The Deployment "web" is invalid: spec.template.metadata.labels: Invalid value: '
            '{"app":"web"}: `selector` does not match template `labels`\n',
        ),
    ],
    ids=["a misspelt field", "a text for a number", "a selector for others"],
)
def test_tells_what_is_wrong_with_a_file(
    kubectl: Kubectl, change: tuple[str, str], message: str
) -> None:
    said = kubectl.run("create", "--filename=-", stdin=WEB.replace(*change))
    assert said.err == message
    assert said.code == 1

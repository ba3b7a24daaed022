from __future__ import annotations

import gzip
import json
import os
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.oracle.generate import generate
from tests.sizes import sized

from mooring.api import codec, core
from mooring.api.frozen import FrozenDict
from mooring.api.meta import Condition, Value
from mooring.api.resource import AllocationResult, DeviceClass
from mooring.errors import ConfigError
from mooring.lens import redaction
from mooring.lens.reading import read_snapshot
from mooring.lens.redaction import Redactor, redact, redactor_for
from mooring.lens.snapshot import KINDS, ClusterState, MissingKind, QueuedState, Snapshot
from mooring.lens.writing import encoded, write_snapshot
from mooring.simulator.evaluate import Evaluator
from mooring.simulator.scenario import Scenario
from mooring.testing import node, pod

CLUSTERS = int(os.environ.get("MOORING_REDACTION_CLUSTERS", "44"))


# --- the law -------------------------------------------------------------------------------------


def with_pod(scenario: Scenario) -> Snapshot:
    pods = (*scenario.cluster.pods, scenario.pod)
    return Snapshot(cluster=structs.replace(scenario.cluster, pods=pods))


def redacted(scenario: Scenario, redactor: Redactor, snapshot: Snapshot) -> Scenario:
    found = redactor.snapshot(snapshot).cluster
    *others, pod_ = found.pods
    config = redactor.config({"profiles": [scenario.profile]}) if scenario.profile else None
    return structs.replace(
        scenario,
        pod=pod_,
        cluster=structs.replace(found, pods=tuple(others)),
        profile=config["profiles"][0] if config else scenario.profile,
        in_flight=tuple(
            structs.replace(
                one,
                namespace=redactor.name(one.namespace),
                name=redactor.name(one.name),
                allocation=redactor._struct(one.allocation),
            )
            for one in scenario.in_flight
        ),
    )


def decide(evaluator: Evaluator, scenario: Scenario) -> Any:
    try:
        return evaluator.trial(scenario).run()
    except ConfigError as error:
        return [problem.path for problem in error.problems]


def with_allocations(decided: Any, redactor: Redactor) -> Any:
    """With pseudonyms in what is allocated, which has words of drivers."""
    if not isinstance(decided, dict) or not decided.get("allocations"):
        return decided

    def changed(one: dict[str, Any]) -> dict[str, Any]:
        allocation = codec.convert(one["allocation"], AllocationResult)
        space, _, name = one["claim"].partition("/")
        name = name if name.startswith("<") else redactor.name(name)
        fields = codec.to_builtins(redactor._struct(allocation))
        for result in fields.get("devices", {}).get("results", ()):
            if "shareID" in result:
                result["shareID"] = "<generated>"
        return {**one, "claim": f"{redactor.name(space)}/{name}", "allocation": fields}

    found = {node: list(map(changed, some)) for node, some in decided["allocations"].items()}
    return {**decided, "allocations": found}


def compared(value: Any, change: Callable[[str], str]) -> Any:
    """Without the order of names, and without the texts of errors, which quote what is wrong.

    Allocations are compared, not what is written and said of them.
    """
    if isinstance(value, dict):
        kept = {
            change(key): compared(inner, change)
            for key, inner in value.items()
            if key not in ("scoreError", "fitErrorFinal", "writes", "events")
            and not (key == "reasons" and value.get("code") == "Error")
        }
        return kept
    if isinstance(value, list):
        return sorted((compared(inner, change) for inner in value), key=str)
    if isinstance(value, str):
        text = change(value)
        return sorted(text.replace(",", " ").rstrip(".").split()) if " " in text else text
    return value


def assert_law(evaluator: Evaluator, scenario: Scenario) -> Redactor:
    snapshot = with_pod(scenario)
    redactor = redactor_for(snapshot)
    names = {one.metadata.name for one in snapshot.cluster.objects()}
    names |= {one.key for one in snapshot.cluster.pods} | {"no-such-node"}
    names |= {f"{one.namespace}/{one.name}" for one in snapshot.cluster.resourceclaims}

    def change(text: str) -> str:
        if " " in text:
            return redactor.message(text)
        return redactor.name(text) if text in names else text

    expected = compared(with_allocations(decide(evaluator, scenario), redactor), change)
    found = compared(decide(evaluator, redacted(scenario, redactor, snapshot)), lambda text: text)
    assert found == expected, scenario.id
    return redactor


def test_the_same_is_decided_with_pseudonyms() -> None:
    evaluator = Evaluator()
    for raw in generate(CLUSTERS, seed=11):
        assert_law(evaluator, codec.decode(json.dumps(raw), Scenario))


@pytest.mark.parametrize("seed", [21])
def test_the_same_devices_are_allocated_with_pseudonyms(seed: int) -> None:
    """Selectors, drivers, attributes and capacities have pseudonyms, unless letters are read."""
    evaluator, stays = Evaluator(), 0
    for raw in generate(sized(40), seed=seed, family="dynamicresources"):
        scenario = codec.decode(json.dumps(raw), Scenario)
        stays += assert_law(evaluator, scenario)._devices.stay
    assert 0 < stays < sized(20)


@pytest.mark.parametrize(
    ("expression", "is_redacted"),
    [
        ('device.attributes["gpu.leak"].leak == "leak"', True),
        ('"leak" in device.attributes["gpu.leak"] && !device.allowMultipleAllocations', True),
        ('cel.bind(leak, device.attributes["gpu.leak"], has(leak.model) && leak.model)', True),
        ('size(device.attributes["gpu.leak"]) > 2', True),
        ('device.capacity["gpu.leak"].leak.compareTo(quantity("40Gi")) >= 0', True),
        ('["leak", "x"].exists(leak, leak == device.attributes["d"].?leak.orValue("x"))', True),
        ("leak-3 == (", True),
        ('"leak', True),
        ('device.driver.endsWith("leak")', False),
        ('device.attributes["gpu.leak"].leak.matches("^leak")', False),
        ('device.driver > "leak"', False),
        ('size("leak") == 4', False),
    ],
)
def test_a_selector_has_pseudonyms_unless_it_reads_letters(
    expression: str, is_redacted: bool
) -> None:
    fields = {
        "metadata": {"name": "c"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    class_ = codec.convert(fields, DeviceClass)
    (found,) = redact(Snapshot(cluster=ClusterState(deviceclasses=(class_,)))).cluster.deviceclasses
    cel = found.spec.selectors[0].cel
    assert cel is not None
    assert ("leak" not in cel.expression) == is_redacted
    if not is_redacted:
        assert cel.expression == expression


# --- nothing is left -----------------------------------------------------------------------------


def leaky(hint: Any, depth: int = 0) -> Any:
    """A value of a type with text wherever it may be, every piece of which is recognisable."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if inner and type(None) in inner:
        return leaky(inner[0], depth)
    if origin is tuple:
        return (leaky(inner[0], depth),)
    if hint is str:
        return f"leak-{depth}"
    if hint == FrozenDict[str, str]:
        return FrozenDict({"leak-key": "leak-value", "leak.example.com/x": "leak-other"})
    if isinstance(hint, type) and issubclass(hint, Value):
        return leaky_struct(hint, depth + 1)
    return None


def leaky_struct(kind: type[Any], depth: int = 0) -> Any:
    fields = {}
    for field, hint in typing.get_type_hints(kind).items():
        if field in kind.__struct_fields__ and field not in redaction._KEPT_FIELDS:
            value = leaky(hint, depth)
            if value is not None:
                fields[field] = value
    return kind(**fields)


@pytest.mark.parametrize("field", KINDS)
def test_no_text_of_any_kind_is_left(field: str) -> None:
    value = leaky_struct(KINDS[field])
    assert b"leak" in codec.encode(value)
    cluster: Any = {field: (value,)}
    found = redact(Snapshot(cluster=ClusterState(**cluster)))
    data = gzip.decompress(b"".join(encoded(found)))
    assert b"leak" not in data
    assert found.redacted


def test_nothing_else_of_a_snapshot_is_left() -> None:
    blocked = Condition(type="PodScheduled", reason="Unschedulable", message='pvc "leak" not found')
    web = structs.replace(pod("leak").api, status=core.PodStatus(conditions=(blocked,)))
    given = Snapshot(
        cluster=ClusterState(pods=(web,)),
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "clientConnection": {"kubeconfig": "/leak"},
            "extenders": [{"urlPrefix": "http://leak"}],
            "profiles": [
                {
                    "schedulerName": "s",
                    "pluginConfig": [
                        {"name": "NodeAffinity", "args": {"addedAffinity": added("leak")}},
                        {
                            "name": "PodTopologySpread",
                            "args": {"defaultConstraints": [{"topologyKey": "leak"}]},
                        },
                        {"name": "Own", "args": {"text": "leak", "list": ["leak"], "cpu": 3}},
                    ],
                }
            ],
        },
        queue=(QueuedState(uid="leak", queue="active", message="no leak here"),),
        missing=(MissingKind("pods", 'User "leak" cannot list'),),
        notes=("leak.yaml: something",),
    )
    found = redact(given)
    data = gzip.decompress(b"".join(encoded(found)))
    assert b"leak" not in data
    assert found.config is not None
    assert found.config["profiles"][0]["schedulerName"] == "s"
    assert found.config["profiles"][0]["pluginConfig"][2]["args"]["cpu"] == 3
    said = found.cluster.pods[0].status.conditions[0].message
    assert said.startswith("x")
    assert said.endswith('" not found')


def added(value: str) -> dict[str, Any]:
    test = {"key": value, "operator": "In", "values": [value]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [test]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": required}


# --- what is kept --------------------------------------------------------------------------------


def test_keeps_equality_integers_and_words_of_kubernetes() -> None:
    labels = {"size": "10", "kubernetes.io/os": "linux", "team": "ml", "node.kubernetes.io/x": "v"}
    taints = ["team=ml:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]
    first = node("a", labels=labels, zone="eu-1", taints=taints, images={"nginx:latest": 5})
    second = pod("p", image="nginx", node_selector={"team": "ml"}, tolerates=["team=ml"], on="a")
    found = redact(Snapshot(cluster=ClusterState(nodes=(first.api,), pods=(second.api,)))).cluster
    (one,), (two,) = found.nodes, found.pods
    kept = {key: one.metadata.labels[key] for key in ("kubernetes.io/os", "kubernetes.io/hostname")}
    assert kept == {"kubernetes.io/os": "linux", "kubernetes.io/hostname": one.metadata.name}
    assert "10" in one.metadata.labels.values()
    assert one.metadata.labels["topology.kubernetes.io/zone"] != "eu-1"
    ((key, value),) = two.spec.node_selector.items()
    assert one.metadata.labels[key] == value
    assert (one.spec.taints[0].key, one.spec.taints[0].value) == (key, value)
    assert (two.spec.tolerations[0].key, two.spec.tolerations[0].value) == (key, value)
    assert one.spec.taints[1].key == "node.kubernetes.io/unreachable"
    assert two.spec.node_name == one.metadata.name
    assert two.spec.containers[0].image in one.status.images[0].names
    assert one.status.allocatable == first.api.status.allocatable


def test_pseudonyms_of_pods_sort_as_their_names_do() -> None:
    """Of equally important pods, preemption takes the last by name."""
    names = ("a", "a-b", "b", "x", "x-1", "10", "z")
    spaces = ("default", "s", "s-1", "s1", "kube-system")
    pods = [pod(name, namespace=space) for space in spaces for name in names]
    snapshot = Snapshot(cluster=ClusterState(pods=tuple(one.api for one in pods)))
    change = redactor_for(snapshot).name
    keys = [one.key for one in pods]
    assert sorted(map(change, keys)) == [change(key) for key in sorted(keys)]


def test_the_claim_of_an_ephemeral_volume_stays_that_of_its_pod() -> None:
    claim = codec.convert({"metadata": {"name": "web-0-data"}}, core.PersistentVolumeClaim)
    volumes = {"volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}]}
    web = pod("web-0", spec=volumes).api
    given = Snapshot(cluster=ClusterState(pods=(web,), persistentvolumeclaims=(claim,)))
    found = redact(given).cluster
    (one,), (two,) = found.pods, found.persistentvolumeclaims
    assert two.metadata.name == f"{one.metadata.name}-{one.spec.volumes[0].name}" != "web-0-data"


def test_parts_can_be_redacted_alone() -> None:
    first = node("a", labels={"team": "ml"}, images={"nginx:latest": 5})
    given = Snapshot(cluster=ClusterState(nodes=(first.api,)))
    for part in redaction.PARTS:
        (one,) = redact(given, [part]).cluster.nodes
        assert (one.metadata.name != "a") == (part == redaction.NAMES)
        assert (one.metadata.labels["kubernetes.io/hostname"] != "a") == (part == redaction.NAMES)
        assert ("team" not in one.metadata.labels) == (part == redaction.LABELS)
        assert (one.status.images[0].names != ("nginx:latest",)) == (part == redaction.IMAGES)


def test_a_key_keeps_names_equal_between_files() -> None:
    given = Snapshot(cluster=ClusterState(nodes=(node("a").api,)))
    other = Snapshot(cluster=ClusterState(nodes=(node("0").api, node("a").api)))

    def name(snapshot: Snapshot, key: bytes | None) -> str:
        return redact(snapshot, key=key).cluster.nodes[-1].metadata.name

    assert name(given, b"k") == name(other, b"k")
    assert name(given, b"k") != name(given, b"l")
    assert name(given, None) != name(given, None)


def test_a_redacted_snapshot_can_be_read(tmp_path: Path) -> None:
    given = redact(Snapshot(cluster=ClusterState(nodes=(node("a").api,), pods=(pod("p").api,))))
    write_snapshot(given, tmp_path / "x.snap.gz")
    assert read_snapshot(tmp_path / "x.snap.gz") == given

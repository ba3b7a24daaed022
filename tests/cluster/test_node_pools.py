"""Pools of nodes: as text, in a file, and scaled in a cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cluster.virtual_cluster import EVENTS, NODES, names, virtual_cluster

from mooring.cluster.apiserver.resources import CONFIG_MAPS
from mooring.cluster.apiserver.store import Object
from mooring.cluster.node_pools import (
    POOLS,
    NodePool,
    check_names,
    parse_pool,
    publish_pools,
    read_pools,
    scaled,
)
from mooring.cluster.node_templates import NodeTemplate

GPU = (
    "gpu:2,cpu=64,memory=256Gi,pods=30,nvidia.com/gpu=8,label.tier=fast,annotation.note=n,"
    "taint=gpu=yes:NoSchedule,taint=x:NoExecute,zone=a,zone=b,type=p4"
)


def test_reads_a_pool() -> None:
    assert parse_pool(GPU) == NodePool(
        "gpu",
        NodeTemplate(
            name="gpu-{i}",
            count=2,
            cpu="64",
            memory="256Gi",
            pods=30,
            resources={"nvidia.com/gpu": "8"},
            labels={"tier": "fast", "mooring.dev/pool": "gpu"},
            annotations={"note": "n"},
            taints=("gpu=yes:NoSchedule", "x:NoExecute"),
            zones=("a", "b"),
            instance_type="p4",
        ),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gpu", "pool 'gpu': expected NAME:COUNT first, such as gpu:4"),
        ("gpu:x", "expected NAME:COUNT first"),
        ("GPU:1", "pool 'GPU': expected a name of lower-case letters"),
        ("gpu:1,cpu", "pool gpu: 'cpu': expected KEY=VALUE with cpu, memory, pods"),
        ("gpu:1,disk=3", "pool gpu: 'disk': expected cpu, memory, pods"),
        ("gpu:1,cpu=lots", "pool gpu: cpu: expected a quantity"),
        ("gpu:1,a.b/c=lots", "pool gpu: a.b/c: expected a quantity"),
        ("gpu:1,pods=many", "pool gpu: pods: expected a number, got 'many'"),
        ("gpu:1,taint=x", "pool gpu: taint 'x': expected key=value:Effect"),
        ("gpu:99999999", "pool gpu: expected 0 to 65536 nodes"),
    ],
)
def test_says_what_is_wrong_with_a_pool(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_pool(text)


def test_devices_of_a_pool_are_an_annotation_of_its_nodes() -> None:
    pool = parse_pool("gpu:2,devices=gpu=4:memory=80Gi,devices=nic=1")
    assert pool.template.annotations == {"mooring.dev/devices": "gpu=4:memory=80Gi;nic=1"}
    with pytest.raises(ValueError, match="pool gpu: expected gpu=1 to gpu=1024, got 'gpu=none'"):
        parse_pool("gpu:2,devices=gpu=none")


def test_reads_a_file(tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text("pools:\n  - {name: gpu, count: 2, cpu: 64, resources: {nvidia.com/gpu: 8}}\n")
    [pool] = read_pools(file)
    assert (pool.name, pool.template.count, pool.template.cpu) == ("gpu", 2, 64)
    for text, problem in (
        ("pools:\n  - {nam: gpu}\n", "unknown field `nam`"),
        ("pools: 3\n", "Expected `array`"),
        ("pools: [{name: g, cpu: x}]\n", "pool g: cpu: expected a quantity"),
        ("a: b: c\n", "mapping values are not allowed"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=re.escape(problem)) as raised:
            read_pools(file)
        assert str(raised.value).startswith(str(file))
    with pytest.raises(ValueError, match="pool gpu: expected once, found twice"):
        check_names([pool, pool])


def test_scales_pools_while_the_cluster_runs() -> None:
    with virtual_cluster() as cluster:
        publish_pools(cluster.verbs, [parse_pool(GPU), parse_pool("cpu:1")])
        cluster.settle()
        assert names(cluster.all(NODES)) == ["cpu-0", "gpu-0", "gpu-1"]
        gpu = cluster.get(NODES, "gpu-1")
        assert gpu["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert gpu["metadata"]["labels"]["topology.kubernetes.io/zone"] == "b"
        assert [one["key"] for one in gpu["spec"]["taints"]] == ["gpu", "x"]

        def resize(**sizes: int) -> None:
            def change(value: Object) -> None:
                value["data"] |= scaled(value["data"], sizes)

            cluster.verbs.modify(CONFIG_MAPS, *POOLS, change)
            cluster.settle()

        resize(gpu=3, cpu=0)
        assert names(cluster.all(NODES)) == ["gpu-0", "gpu-1", "gpu-2"]
        networks = {one["spec"]["podCIDR"] for one in cluster.all(NODES)}
        assert len(networks) == 3
        cluster.verbs.delete(NODES, "", "gpu-1")
        cluster.advance(60)
        assert names(cluster.all(NODES)) == ["gpu-0", "gpu-2"]  # deleted by hand: stays away
        resize(gpu=250)
        assert len(cluster.all(NODES)) == 250
        resize(gpu=1)
        assert names(cluster.all(NODES)) == ["gpu-0"]
        with pytest.raises(ValueError, match="pool tpu: expected one of the cluster's pools: cpu"):
            resize(tpu=1)


def test_says_which_pool_can_not_be_read_and_scales_the_others() -> None:
    with virtual_cluster() as cluster:
        publish_pools(cluster.verbs, [parse_pool("cpu:1"), parse_pool("gpu:1")])

        def edit(value: Object) -> None:
            value["data"]["cpu"] = '{"count": "many"}'

        cluster.verbs.modify(CONFIG_MAPS, *POOLS, edit)
        cluster.settle()
        assert names(cluster.all(NODES)) == ["gpu-0"]
        [event] = [one for one in cluster.all(EVENTS, POOLS[0]) if one["reason"] == "InvalidPool"]
        assert event["message"].startswith("pool cpu: Expected `int`, got `str`")

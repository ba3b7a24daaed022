from typing import Any

import pytest

from mooring.api import (
    HostPort,
    Pod,
    amount,
    container_images,
    convert,
    host_ports,
    is_counted,
    is_extended,
    normalized_image,
    parse_quantity,
    pod_nonzero_requests,
    pod_requests,
)

DEFAULT_MEMORY = 200 * 1024 * 1024


def container(name: str = "c", *, sidecar: bool = False, **requests: str) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    return made | {"restartPolicy": "Always"} if sidecar else made


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **more: Any) -> Pod:
    status = more.pop("status", {})
    spec = {"containers": list(containers), "initContainers": list(init), **more}
    return convert({"spec": spec, "status": status}, Pod)


def texts(made: Pod, **options: bool) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in pod_requests(made, **options).items()}


def test_sums_regular_containers() -> None:
    assert texts(pod(container(cpu="100m", memory="1Gi"), container(cpu="1"))) == {
        "cpu": "1100m",
        "memory": "1Gi",
    }


def test_takes_the_largest_init_container_when_it_needs_more() -> None:
    made = pod(container(cpu="1", memory="1Gi"), init=(container(cpu="3"), container(cpu="2")))
    assert texts(made) == {"cpu": "3", "memory": "1Gi"}


def test_runs_sidecars_beside_later_init_containers_and_beside_the_pod() -> None:
    made = pod(
        container(cpu="1"),
        init=(container(cpu="2"), container(sidecar=True, cpu="500m"), container(cpu="2")),
    )
    assert texts(made) == {"cpu": "2500m"}
    assert texts(pod(container(cpu="3"), init=(container(sidecar=True, cpu="1"),))) == {"cpu": "4"}


def test_replaces_what_the_pod_as_a_whole_names_then_adds_overhead() -> None:
    resources = {"requests": {"cpu": "4", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}}
    made = pod(
        container(cpu="1", memory="1Gi"),
        resources=resources,
        overhead={"cpu": "100m", "x.io/y": "1"},
    )
    assert texts(made) == {"cpu": "4100m", "memory": "1Gi", "hugepages-2Mi": "4Mi", "x.io/y": "1"}
    assert texts(made, pod_level=False) == {"cpu": "1100m", "memory": "1Gi", "x.io/y": "1"}


def resized(reason: str) -> Pod:
    return pod(
        container("a", cpu="3"),
        init=(container("once", cpu="1"),),
        status={
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
            "containerStatuses": [
                {
                    "name": "a",
                    "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
                    "allocatedResources": {"cpu": "2"},
                }
            ],
            "initContainerStatuses": [{"name": "once", "resources": {"requests": {"cpu": "9"}}}],
        },
    )


def test_counts_the_most_a_resized_container_may_hold() -> None:
    assert texts(resized("Deferred"), use_status=True) == {"cpu": "3", "memory": "2Gi"}
    assert texts(resized("Infeasible"), use_status=True) == {"cpu": "2", "memory": "2Gi"}
    assert texts(resized("Deferred")) == {"cpu": "3"}


def test_counts_the_most_a_resized_pod_may_hold() -> None:
    made = pod(
        container(cpu="1"),
        resources={"requests": {"cpu": "2", "memory": "1Gi"}},
        status={"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"memory": "512Mi"}},
    )
    assert texts(made, use_status=True) == {"cpu": "5", "memory": "1Gi"}


def test_assumes_a_little_for_containers_that_say_nothing() -> None:
    assert pod_nonzero_requests(pod(container())) == (100, DEFAULT_MEMORY)
    assert pod_nonzero_requests(pod(container(cpu="0", memory="0"))) == (0, 0)
    assert pod_nonzero_requests(pod(container(cpu="2"), container())) == (2100, 2 * DEFAULT_MEMORY)
    assert pod_nonzero_requests(pod(container(cpu="10m"), init=(container(),))) == (
        100,
        DEFAULT_MEMORY,
    )
    assert pod_nonzero_requests(pod(container(), overhead={"cpu": "50m"})) == (150, DEFAULT_MEMORY)


def test_assumes_nothing_the_pod_as_a_whole_already_says() -> None:
    made = pod(container(), container(cpu="1"), resources={"requests": {"memory": "1Gi"}})
    assert pod_nonzero_requests(made) == (1000, 1024**3)
    made = pod(container(), container(), resources={"requests": {"memory": "1Gi"}})
    assert pod_nonzero_requests(made) == (200, 1024**3)
    assert pod_nonzero_requests(made, pod_level=False) == (200, 2 * DEFAULT_MEMORY)


def test_counts_cpu_in_thousandths_and_everything_else_whole() -> None:
    assert amount("cpu", parse_quantity("1500u")) == 2
    assert amount("memory", parse_quantity("1.5")) == 2


@pytest.mark.parametrize(
    ("resource", "counted"),
    [
        ("cpu", True),
        ("memory", True),
        ("ephemeral-storage", True),
        ("pods", True),
        ("nvidia.com/gpu", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi-x", True),
        ("kubernetes.io/thing", True),
        ("storage", False),
        ("requests.nvidia.com/gpu", False),
        ("nvidia.com/", False),
        ("Nvidia_/gpu", False),
    ],
)
def test_knows_which_resources_nodes_account_for(resource: str, counted: bool) -> None:
    assert is_counted(resource) is counted
    assert is_extended(resource) is (resource == "nvidia.com/gpu")


def test_lists_host_ports_of_containers_and_sidecars() -> None:
    def with_ports(*ports: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"name": "c", "ports": list(ports), **more}

    made = pod(
        with_ports(
            {"containerPort": 80},
            {"containerPort": 80, "hostPort": 80},
            {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
        ),
        init=(
            with_ports({"hostPort": 1}),
            with_ports({"hostPort": 2, "protocol": ""}, restartPolicy="Always"),
        ),
    )
    assert host_ports(made) == (
        HostPort("0.0.0.0", "TCP", 80),
        HostPort("10.0.0.1", "UDP", 53),
        HostPort("0.0.0.0", "TCP", 2),
    )


def test_lists_images_in_pulling_order() -> None:
    made = pod(
        {"image": "nginx"},
        init=({"image": "init:1"},),
        volumes=[{"name": "v", "image": {"reference": "r.io:5000/data"}}, {"name": "w"}],
    )
    assert container_images(made) == ("init:1", "nginx:latest", "r.io:5000/data:latest")


@pytest.mark.parametrize(
    ("image", "normalized"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.27", "nginx:1.27"),
        ("host:5000/nginx", "host:5000/nginx:latest"),
        ("nginx@sha256:abc", "nginx@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_adds_the_tag_nobody_writes(image: str, normalized: str) -> None:
    assert normalized_image(image) == normalized

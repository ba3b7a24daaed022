from __future__ import annotations

import pytest
from tests.cluster.virtual_cluster import VirtualCluster, virtual_cluster, workload

from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.revisions import REVISIONS


def numbers(cluster: VirtualCluster) -> dict[str, int]:
    """The revision of each image."""
    return {
        one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: one["revision"]
        for one in cluster.all(REVISIONS)
    }


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])
def test_keeps_the_former_templates(kind: str) -> None:
    of = known(f"{kind.lower()}s", "apps")
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(workload(kind, "d", revisionHistoryLimit=1))
        cluster.advance(5)

        def set_image(image: str) -> None:
            def change(value: Object) -> None:
                value["spec"]["template"]["spec"]["containers"][0]["image"] = image

            cluster.verbs.modify(of, "default", "d", change)
            cluster.advance(20)

        [first] = cluster.all(REVISIONS)
        [pod] = cluster.pods()
        hashes = [one["metadata"]["labels"]["controller-revision-hash"] for one in (first, pod)]
        assert hashes[0] == hashes[1]
        assert first["metadata"]["name"].startswith("d-")
        assert first["metadata"]["ownerReferences"][0]["kind"] == kind
        assert first["data"]["spec"]["template"]["$patch"] == "replace"
        set_image("app:2")
        assert numbers(cluster) == {"app:1": 1, "app:2": 2}
        set_image("app:1")  # rolled back
        assert numbers(cluster) == {"app:1": 3, "app:2": 2}
        set_image("app:3")
        assert numbers(cluster) == {"app:1": 3, "app:3": 4}

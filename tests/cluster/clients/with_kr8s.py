"""What users of kr8s do with a custom resource; the kubeconfig is the argument."""

from __future__ import annotations

import sys
from typing import Any

import kr8s
from kr8s.objects import new_class

Widget = new_class("Widget", "example.com/v1", namespaced=True, scalable=True, scalable_spec="size")


def main(kubeconfig: str) -> None:
    api = kr8s.api(kubeconfig=kubeconfig)
    made = Widget(
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "k", "namespace": "default"},
            "spec": {"color": "red"},
        },
        api=api,
    )
    made.create()
    made.patch({"spec": {"color": "blue"}})
    made.scale(3)
    found: Any = api.get("widgets")
    for one in found:
        print(one.name, one.spec.color, one.spec.size)
    made.delete()
    made.wait("delete", timeout=20)
    print("deleted")


if __name__ == "__main__":
    main(sys.argv[1])

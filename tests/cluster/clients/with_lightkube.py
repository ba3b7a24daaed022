"""What users of lightkube do with a custom resource; the kubeconfig is the argument."""

from __future__ import annotations

import sys
from typing import Any

from lightkube import Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource

Widget: Any = create_namespaced_resource("example.com", "v1", "Widget", "widgets")


def widget(color: str) -> Any:
    meta = {"name": "l", "namespace": "default"}
    return Widget.from_dict({"metadata": meta, "spec": {"color": color}})


def main(kubeconfig: str) -> None:
    client = Client(config=KubeConfig.from_file(kubeconfig), field_manager="tests")
    client.create(widget("red"))
    client.apply(widget("blue"), force=True)
    for one in client.list(Widget):
        print(one.metadata.name, one.spec["color"], one.spec["size"])
    client.delete(Widget, "l")
    print("deleted")


if __name__ == "__main__":
    main(sys.argv[1])

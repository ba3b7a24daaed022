"""What users of kubernetes_asyncio do with a custom resource; the kubeconfig is the argument."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import kubernetes_asyncio as kubernetes

PLACE = ("example.com", "v1", "default", "widgets")


def widget(color: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "y", "namespace": "default"},
        "spec": {"color": color, "size": 2},
    }


async def main(kubeconfig: str) -> None:
    await kubernetes.config.load_kube_config(kubeconfig)
    async with kubernetes.client.ApiClient() as api, asyncio.timeout(60):
        custom = kubernetes.client.CustomObjectsApi(api)
        await custom.create_namespaced_custom_object(*PLACE, widget("red"))
        change = [{"op": "replace", "path": "/spec/color", "value": "blue"}]
        await custom.patch_namespaced_custom_object(*PLACE, "y", change)
        async with kubernetes.watch.Watch().stream(
            custom.list_namespaced_custom_object, *PLACE
        ) as events:
            async for event in events:
                found = event["object"]
                if event["type"] == "DELETED":
                    print("deleted")
                    return
                print(found["metadata"]["name"], found["spec"]["color"], found["spec"]["size"])
                await custom.delete_namespaced_custom_object(*PLACE, "y")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

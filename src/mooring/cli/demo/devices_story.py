"""The story of devices: claims from a template, a pod that waits for devices, and gets some."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

from mooring.cli.demo.manifests import deployment, pod
from mooring.cli.demo.story import Story
from mooring.cluster.controllers.device_driver import CLASSES, DRIVER, SLICES
from mooring.cluster.controllers.resource_claims import RESOURCE_CLAIMS
from mooring.cluster.node_templates import NodeTemplate
from mooring.cluster.simulated_devices import DEVICES

MACHINES: Final = (
    NodeTemplate(
        name="a100-{i}",
        count=2,
        cpu="32",
        annotations={DEVICES: "gpu=4:model=a100:memory=80Gi"},
    ),
    NodeTemplate(
        name="t4-{i}", count=1, cpu="16", annotations={DEVICES: "gpu=4:model=t4:memory=16Gi"}
    ),
    NodeTemplate(name="plain-{i}", count=2, cpu="16"),
)
_MEMORY: Final = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
_MODEL: Final = f"device.attributes[{DRIVER!r}].model".replace("'", '"')


def template(name: str, count: int, selector: str) -> dict[str, Any]:
    """A ResourceClaimTemplate for some GPUs."""
    exactly: dict[str, Any] = {"deviceClassName": "gpu", "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}},
    }


def with_claim(value: dict[str, Any], claim_template: str) -> dict[str, Any]:
    """A pod or a Deployment whose pods get a claim from a template."""
    inner = value["spec"].get("template", value)
    inner["spec"]["resourceClaims"] = [
        {"name": "gpus", "resourceClaimTemplateName": claim_template}
    ]
    return value


class DevicesStory(Story):
    """On machines with GPUs of two models; nothing of it needs a real GPU."""

    def chapters(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return self._publish, self._claim, self._wait_for_devices, self._give_back

    async def _publish(self) -> None:
        self._screen.chapter("Devices", "kubectl get resourceslices,deviceclasses")
        await self._wait(lambda: self._cluster.store.count(SLICES) == 3, "devices are published")
        models: dict[str, int] = {}
        for item in self._cluster.store.list(SLICES):
            for device in item.decoded()["spec"]["devices"]:
                model = device["attributes"]["model"]["string"]
                models[model] = models.get(model, 0) + 1
        shown = ", ".join(f"{count} {model}" for model, count in sorted(models.items()))
        classes = ", ".join(item.name for item in self._cluster.store.list(CLASSES))
        self._screen.say(f"{shown} on 3 of 5 nodes; class {classes}.")

    async def _claim(self) -> None:
        self._screen.chapter(
            "Claims from a template", "3 pods, each 2 GPUs with at least 40Gi of memory"
        )
        self._cluster.apply(
            template("two-large", 2, _MEMORY), with_claim(deployment("train", 3, "4"), "two-large")
        )
        await self._until("train", 3)
        for line in self._allocated():
            self._screen.say(line)
        self._expect(
            all(name.startswith("a100-") for name in self._nodes_of("train")),
            "large GPUs are on a100 nodes",
        )

    async def _wait_for_devices(self) -> None:
        self._screen.chapter("A pod that waits for devices", "it asks for 4 GPUs of model a100")
        self._cluster.apply(
            template("four", 4, f'{_MODEL} == "a100"'), with_claim(pod("tune", "4"), "four")
        )
        await self._wait(lambda: self._why("tune"), "a reason")
        self._screen.say(f"tune waits: {self._why('tune')}")
        for fact in await self._facts("tune"):
            self._screen.say(f"[dim]{fact}[/]")

    async def _give_back(self) -> None:
        scaled = "kubectl scale deployment train --replicas=1"
        self._screen.chapter("Devices are given back", scaled)
        self._cluster.apply(with_claim(deployment("train", 1, "4"), "two-large"))
        await self._wait(lambda: self._node_of("tune"), "tune is bound")
        self._screen.say(f"tune is bound to {self._node_of('tune')}.")
        for line in self._allocated():
            self._screen.say(line)

    def _allocated(self) -> Iterator[str]:
        """The devices of every pod that has some."""
        found = {}
        for item in self._cluster.store.list(RESOURCE_CLAIMS, "default"):
            claim = item.decoded()
            status = claim.get("status") or {}
            users = [user["name"] for user in status.get("reservedFor") or ()]
            results = (status.get("allocation") or {}).get("devices", {}).get("results") or ()
            if users and results:
                pool = results[0]["pool"]
                found[users[0]] = f"{pool}: {', '.join(one['device'] for one in results)}"
        for name, devices in sorted(found.items(), key=lambda entry: entry[1]):
            yield f"{devices}  [dim]{name}[/]"

    async def _facts(self, name: str) -> list[str]:
        """What the scheduler's own explanation says about devices."""
        answer = await self._running.lens.explain(f"default/{name}")
        groups = json.loads(answer or b"{}").get("groups", ())
        return [
            str(fact["text"])
            for group in groups
            for fact in (group.get("said") or {}).get("facts", ())
        ]

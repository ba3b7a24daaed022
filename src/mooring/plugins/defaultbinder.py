"""Bind a pod to its node through the API server."""

import mooring.framework as fw
from mooring.api import core
from mooring.api.meta import ObjectMeta, ObjectReference
from mooring.errors import ApiError
from mooring.framework._internal import InternalPlugin


class DefaultBinder(InternalPlugin, fw.Bind):
    """Bind by the `binding` subresource, with the uid: another pod of this name is not bound."""

    name = "DefaultBinder"

    async def bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        meta = pod.api.metadata
        binding = core.Binding(
            metadata=ObjectMeta(namespace=meta.namespace, name=meta.name, uid=meta.uid),
            target=ObjectReference(kind="Node", name=node_name),
        )
        try:
            await self.handle.client.bind(binding)
        except ApiError as error:
            return fw.Status.error(str(error), cause=error)
        return fw.OK

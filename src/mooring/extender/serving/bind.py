"""The bind verb. Any client that reaches the port can call it, so every argument is checked."""

from __future__ import annotations

from mooring.client.errors import NotFound
from mooring.errors import ApiError
from mooring.extender.serving.cluster import WatchedCluster
from mooring.extender.serving.plugins import ServedPlugins
from mooring.extender.serving.request import Failure
from mooring.extender.wire import ExtenderBindingArgs, ExtenderBindingResult
from mooring.framework.state import CycleState


class BindHandler:
    """Binds for one extender, by its Bind plugins."""

    def __init__(self, served: ServedPlugins, cluster: WatchedCluster) -> None:
        self._served = served
        self._cluster = cluster

    async def bind(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        key = f"{args.pod_namespace}/{args.pod_name}"
        if not (args.pod_name and args.pod_namespace and args.pod_uid and args.node):
            raise Failure("a bind needs PodName, PodNamespace, PodUID and Node")
        try:
            pod = await self._cluster.find_pod(args.pod_namespace, args.pod_name, args.pod_uid)
        except NotFound as error:
            raise Failure(f"there is no pod {key}") from error
        except ApiError as error:
            raise Failure(f"pod {key} could not be looked up: {error}") from error
        if pod.uid != args.pod_uid:
            text = f"pod {key} has the uid {pod.uid}, and was asked for as {args.pod_uid}"
            raise Failure(f"{text}: another pod of that name")
        if pod.node_name == args.node:
            return ExtenderBindingResult()  # by a request whose answer was lost
        if pod.node_name:
            raise Failure(f'pod {key} is on node "{pod.node_name}" already')
        status = await self._served.committer.bind(CycleState(), pod, args.node)
        if not status.ok:
            raise Failure(status.message, status.plugin)
        return ExtenderBindingResult()

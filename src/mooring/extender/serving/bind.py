"""The bind verb. Any client that reaches the port can call it, so every argument is checked."""

from __future__ import annotations

from mooring.client.errors import NotFound
from mooring.errors import ApiError
from mooring.extender.serving.cluster import WatchedCluster
from mooring.extender.serving.plugins import ServedPlugins
from mooring.extender.serving.request import Failure
from mooring.extender.wire import ExtenderBindingArgs, ExtenderBindingResult
from mooring.framework.state import CycleState


async def bind(
    served: ServedPlugins, cluster: WatchedCluster, args: ExtenderBindingArgs
) -> ExtenderBindingResult:
    """Bind by the Bind plugins of the extender."""
    key = f"{args.pod_namespace}/{args.pod_name}"
    if not (args.pod_name and args.pod_namespace and args.pod_uid and args.node):
        raise Failure("a bind needs PodName, PodNamespace, PodUID and Node")
    try:
        pod = await cluster.find_pod(args.pod_namespace, args.pod_name, args.pod_uid)
    except NotFound as error:
        raise Failure(f"there is no pod {key}") from error
    except ApiError as error:
        raise Failure(f"pod {key} could not be looked up: {error}") from error
    if pod.uid != args.pod_uid:
        text = f"pod {key} has the uid {pod.uid}, and was asked for as {args.pod_uid}"
        raise Failure(f"{text}: another pod of that name")
    if pod.node_name == args.node:
        return ExtenderBindingResult()  # bound by an earlier request whose answer was lost
    if pod.node_name:
        raise Failure(f'pod {key} is on node "{pod.node_name}" already')
    status = await served.committer.bind(CycleState(), pod, args.node)
    if not status.ok:
        raise Failure(status.message, status.plugin)
    return ExtenderBindingResult()

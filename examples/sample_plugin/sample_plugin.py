"""A plugin at three extension points, with arguments that are checked before anything runs."""

import logging

import mooring.framework as fw

log = logging.getLogger(__name__)


class SampleArgs(fw.Args, frozen=True):
    """The plugin's `args` in the configuration, spelt favoriteColor and so on there."""

    favorite_color: str = ""
    favorite_number: int = 0
    thanks_to: str = ""


class SamplePlugin(fw.Plugin[SampleArgs], fw.PreFilter, fw.Filter, fw.PreBind):
    """Watch pods pass by; object only if the chosen node is gone before the pod is bound."""

    name = "sample-plugin"
    wakes_on = ()  # PreFilter and Filter refuse no pod

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        log.debug("prefilter pod", extra={"pod": pod.key, "thanks_to": self.args.thanks_to})
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        log.debug("filter pod", extra={"pod": pod.key, "node": node.name})
        return fw.OK

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        node = self.handle.nodes.get(node_name)
        if node is None:
            error = f'nodeinfo not found for node name "{node_name}"'
            return fw.Status.error(f"prebind get node: {node_name} info error: {error}")
        log.debug("prebind node info", extra={"pod": pod.key, "node": node.name})
        return fw.OK

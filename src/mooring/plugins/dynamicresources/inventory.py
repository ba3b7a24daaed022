"""The devices of every node: pools by node, kept current as slices come and go.

Pools of one node are local to it; all others may serve several nodes, which form groups by the
slices that apply to them. Nodes without devices of their own share the content of their group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from mooring.api.placement import NodeSelector
from mooring.api.resource import (
    Device,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.api.selectors import NodeMatcher, compile_node_selector
from mooring.cache.objects import Objects
from mooring.framework._internal import DEVICE_TAINT_RULES, LIST_ATTRIBUTES
from mooring.plugins.dynamicresources.pools import DevicePool, PoolDevice, PoolId, gather
from mooring.plugins.dynamicresources.problem import Content

Group = tuple[Any, ...]  # which slices apply to a node
_NO_GROUP: Final[Group] = ()


class NodeIdentity(msgspec.Struct, frozen=True):
    """What slices tell nodes apart by."""

    name: str
    labels: Mapping[str, str]


class Inventory:
    """Follows the slices."""

    def __init__(self, objects: Objects, feature_gates: frozenset[str] = frozenset()) -> None:
        self._objects = objects
        self._unread = objects.unread(ResourceSlice)
        self._has_lists = LIST_ATTRIBUTES in feature_gates
        has_rules = DEVICE_TAINT_RULES in feature_gates
        self._changed_rules = objects.unread(DeviceTaintRule) if has_rules else set()
        self._rules: dict[str, DeviceTaintRule] = {}
        self._slices: dict[str, ResourceSlice] = {}
        self._devices: dict[str, tuple[PoolDevice, ...]] = {}  # by slice
        self._pools: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._homes: dict[PoolId, str] = {}  # the node of a local pool
        self._local: dict[str, set[PoolId]] = {}  # by node
        self._abroad: dict[
            PoolId, DevicePool
        ] = {}  # local pools that other nodes see as not usable
        self._contents: dict[str, tuple[Group, Content]] = {}  # by node with local pools
        self._shared: dict[Group, tuple[list[DevicePool], Content]] = {}
        self._matchers: dict[NodeSelector, NodeMatcher] = {}
        self._names: set[str] = set()  # of nodes that shared slices name
        self._known_shared: set[PoolId] = set()
        self.version: int = 0  # of what several nodes share

    # --- following -------------------------------------------------------------------------------

    def follow(self) -> set[str]:
        """Learn what has changed: the nodes whose own pools did."""
        changed: set[PoolId] = set()
        if self._changed_rules:
            self._follow_rules()
        while self._unread:
            _, name = self._unread.pop()
            old = self._slices.pop(name, None)
            new = self._objects.get(ResourceSlice, name)
            if new is not None and self._rules:
                new = tainted(new, self._rules.values())
            if old is not None:
                pool_id = _pool_of(old.spec)
                changed.add(pool_id)
                self._pools[pool_id].pop(name)
                del self._devices[name]
            if new is not None:
                pool_id = _pool_of(new.spec)
                changed.add(pool_id)
                self._slices[name] = new
                self._pools.setdefault(pool_id, {})[name] = new
                self._devices[name] = tuple(
                    PoolDevice(new, one, has_lists=self._has_lists) for one in new.spec.devices
                )
        nodes: set[str] = set()
        for pool_id in changed:
            self._place(pool_id, nodes)
        for name in nodes:
            self._contents.pop(name, None)
        return nodes

    def _follow_rules(self) -> None:
        """Read all slices again that a rule is, or was, about."""
        rules: list[DeviceTaintRule] = []
        while self._changed_rules:
            _, name = self._changed_rules.pop()
            old = self._rules.pop(name, None)
            new = self._objects.get(DeviceTaintRule, name)
            rules += [one for one in (old, new) if one is not None]
            if new is not None:
                self._rules[name] = new
        for slice_ in self._objects.list(ResourceSlice):
            if any(is_about(rule, slice_) for rule in rules):
                self._unread.add(("", slice_.name))

    def _place(self, pool_id: PoolId, nodes: set[str]) -> None:
        """Find out whose pool it is now."""
        slices = self._pools[pool_id]
        old_home = self._homes.pop(pool_id, "")
        if old_home:
            self._local[old_home].discard(pool_id)
            nodes.add(old_home)
        home = _home(slices.values())
        if home:
            self._homes[pool_id] = home
            self._local.setdefault(home, set()).add(pool_id)
            nodes.add(home)
        abroad = self._seen_abroad(pool_id) if home else None
        had_abroad = self._abroad.pop(pool_id, None)
        if abroad is not None:
            self._abroad[pool_id] = abroad
        if not slices:
            del self._pools[pool_id]
        is_shared = bool(slices) and not home
        if is_shared or pool_id in self._known_shared or abroad is not None or had_abroad:
            self._share_anew()

    def _share_anew(self) -> None:
        self.version += 1
        self._contents.clear()
        self._shared.clear()
        self._matchers.clear()
        self._names.clear()
        self._known_shared = {one for one in self._pools if one not in self._homes}
        for pool_id in self._known_shared:
            for slice_ in self._pools[pool_id].values():
                for selection in _selections(slice_.spec):
                    if selection.node_name:
                        self._names.add(selection.node_name)
                    elif selection.node_selector is not None:
                        selector = selection.node_selector
                        self._matchers[selector] = compile_node_selector(selector)

    def _seen_abroad(self, pool_id: PoolId) -> DevicePool | None:
        """A local pool as other nodes see it: counters apply everywhere; None if all is well."""
        slices = self._pools[pool_id]
        counters = [one for one in slices.values() if one.spec.shared_counters]
        if not counters:
            return None
        pool = gather(pool_id, counters, slices.values(), lambda one: self._devices[one.name])
        return pool if pool is not None and not pool.is_usable else None

    def forget_problems(self) -> None:
        """Demands are others: what was posed for them is of no use."""
        for _, content in (*self._contents.values(), *self._shared.values()):
            content.problems.clear()

    # --- reading ---------------------------------------------------------------------------------

    def home_of(self, pool_id: PoolId) -> str:
        """The node that alone can use a pool; "" if there is no such node."""
        return self._homes.get(pool_id, "")

    @property
    def has_groups(self) -> bool:
        """Whether some shared devices are for some nodes only."""
        return bool(self._matchers or self._names)

    def has_own(self, node_name: str) -> bool:
        """Whether there are pools for this node only."""
        return bool(self._local.get(node_name))

    def knows(self, pool_id: PoolId) -> bool:
        return pool_id in self._pools

    def content(self, node: NodeIdentity) -> Content:
        """The devices that a node can have."""
        group = self._group_of(node)
        known = self._contents.get(node.name)
        if known is not None and known[0] == group:
            return known[1]
        local = self._local.get(node.name)
        shared, content = self._shared_by(group, node)
        if not local:
            return content
        pools = [pool for pool in shared if pool.id not in local]
        for pool_id in local:
            slices = list(self._pools[pool_id].values())
            pool = gather(pool_id, slices, slices, lambda one: self._devices[one.name])
            if pool is not None:
                pools.append(pool)
        content = Content(pools)
        self._contents[node.name] = (group, content)
        return content

    def every_device(self, node: NodeIdentity) -> Iterator[PoolDevice]:
        """All devices of slices that are for a node, whatever the state of their pools."""
        for pool_id in (*self._local.get(node.name, ()), *self._known_shared):
            for name, slice_ in self._pools[pool_id].items():
                spec = slice_.spec
                devices = self._devices[name]
                if spec.per_device_node_selection:
                    yield from (one for one in devices if self._selects(one.device, node))
                elif self._selects(spec, node) or not (spec.node_name or spec.node_selector):
                    yield from devices

    def _group_of(self, node: NodeIdentity) -> Group:
        if not self._matchers and not self._names:
            return _NO_GROUP
        return (
            node.name if node.name in self._names else "",
            *(one.matches(node.labels, node.name) for one in self._matchers.values()),
        )

    def _shared_by(self, group: Group, node: NodeIdentity) -> tuple[list[DevicePool], Content]:
        found = self._shared.get(group)
        if found is None:
            pools = [
                pool
                for pool_id in self._known_shared
                if (pool := self._shared_pool(pool_id, node)) is not None
            ]
            pools += self._abroad.values()
            found = self._shared[group] = (pools, Content(pools))
        return found

    def _shared_pool(self, pool_id: PoolId, node: NodeIdentity) -> DevicePool | None:
        slices = self._pools[pool_id].values()
        applying = [one for one in slices if self._applies(one.spec, node)]
        if not applying:
            return None
        pool = gather(pool_id, applying, slices, lambda one: self._devices[one.name])
        if pool is None:
            return None
        elsewhere = frozenset(
            one.id[2]
            for one in pool.devices
            if one.slice.spec.per_device_node_selection and not self._selects(one.device, node)
        )
        return msgspec.structs.replace(pool, elsewhere=elsewhere) if elsewhere else pool

    def _applies(self, spec: ResourceSliceSpec, node: NodeIdentity) -> bool:
        if spec.shared_counters:
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return self._selects(spec, node)
        if not spec.per_device_node_selection:
            return False
        return any(self._selects(device, node) for device in spec.devices)

    def _selects(self, selection: ResourceSliceSpec | Device, node: NodeIdentity) -> bool:
        if selection.node_name:
            return selection.node_name == node.name
        if selection.all_nodes:
            return True
        if selection.node_selector is None:
            return False
        return self._matchers[selection.node_selector].matches(node.labels, node.name)


def is_about(rule: DeviceTaintRule, slice_: ResourceSlice) -> bool:
    """Whether a rule may taint devices of a slice."""
    selector = rule.spec.device_selector or DeviceTaintSelector()
    return selector.driver in (None, slice_.spec.driver) and selector.pool in (
        None,
        slice_.spec.pool.name,
    )


def tainted(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """A slice with the taints of rules on its devices; without a selector, on all of them."""
    devices = list(slice_.spec.devices)
    for rule in rules:
        if not is_about(rule, slice_):
            continue
        selector = rule.spec.device_selector
        for place, device in enumerate(devices):
            if selector is None or selector.device in (None, device.name):
                taints = (*device.taints, rule.spec.taint)
                devices[place] = msgspec.structs.replace(device, taints=taints)
    spec = msgspec.structs.replace(slice_.spec, devices=tuple(devices))
    return msgspec.structs.replace(slice_, spec=spec)


def _pool_of(spec: ResourceSliceSpec) -> PoolId:
    return (spec.driver, spec.pool.name)


def _home(slices: Iterable[ResourceSlice]) -> str:
    """The node that all slices name; "" if they do not."""
    names = {one.spec.node_name or "" for one in slices}
    return names.pop() if len(names) == 1 else ""


def _selections(spec: ResourceSliceSpec) -> Iterable[ResourceSliceSpec | Device]:
    return (spec, *spec.devices) if spec.per_device_node_selection else (spec,)

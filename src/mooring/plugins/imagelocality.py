"""Prefer nodes that have the pod's images already, so that less has to be pulled."""

from collections.abc import Hashable
from typing import Final

import numpy as np

import mooring.framework as fw
from mooring.cache.internals import mark_of
from mooring.framework._internal import InternalPlugin

_MIB: Final = 1024 * 1024
FLOOR: Final = 23 * _MIB  # bytes; less does not count
CEILING: Final = 1000 * _MIB  # bytes per container; more does not count


class ImageLocality(InternalPlugin, fw.Score):
    """Score by the bytes of the pod's images on a node, each scaled by how widespread it is.

    The scaling keeps a pod's replicas from crowding onto the one node that pulled the image first.
    """

    name = "ImageLocality"
    depends_on = fw.NODE
    key_from_spec = True

    def cache_key(self, pod: fw.Pod) -> Hashable:
        # How widespread an image is depends on all nodes.
        everywhere = self.handle.nodes
        spread = tuple([everywhere.image_spread(image) for image in pod.images])
        return (pod.images, ceiling(pod), len(everywhere), spread) if any(spread) else ()

    def key_version(self) -> int:
        return mark_of(self.handle.nodes).nodes

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        everywhere = self.handle.nodes
        there = 0
        for image in pod.images:
            size = node.image_size(image)
            if size is not None:
                there += scaled_size(size, everywhere.image_spread(image), len(everywhere))
        most = ceiling(pod)
        return fw.MAX_SCORE * (min(max(there, FLOOR), most) - FLOOR) // (most - FLOOR)

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        total = len(self.handle.nodes)
        there = np.zeros(len(nodes), dtype=np.int64)  # bytes
        for image in pod.images:
            found = nodes.with_image(image)
            if found is not None:
                size, present = found
                there += present * scaled_size(size, nodes.image_spread(image), total)
        if not there.any():
            return there
        most = ceiling(pod)
        scores: fw.IntArray = np.clip(there, FLOOR, most)
        scores -= FLOOR
        scores *= fw.MAX_SCORE
        scores //= most - FLOOR
        return scores


def scaled_size(size: int, holders: int, total: int) -> int:
    """As imagelocality.scaledImageScore: the share is taken first, in floating point."""
    return int(size * (holders / total))


def ceiling(pod: fw.Pod) -> int:
    """Bytes beyond which more images do not make a node better."""
    containers = len(pod.spec.init_containers) + len(pod.spec.containers)
    return CEILING * max(containers, 1)

"""Label nodes with the zone that their names tell: `rack-b-07` stands in zone b."""

import asyncio
import re

from mooring.api.core import Node
from mooring.controller import ApiClient, HttpTransport, Reconciler, Requeue, find_endpoint

ZONE = "topology.kubernetes.io/zone"


class ZoneLabeller:
    """Looks at one node after the other, whenever it is new or has changed."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.reconciler: Reconciler = Reconciler(
            client, self.reconcile, name="zone-labeller", workers=4
        )
        self._nodes = self.reconciler.watch(Node)

    async def reconcile(self, key: str) -> Requeue | None:
        node, told = self._nodes.get(key), re.fullmatch(r"rack-([a-z]+)-\d+", key)
        if node is None or told is None or node.metadata.labels.get(ZONE) == told[1]:
            return None
        # If this fails, because the server is away or the node is gone, it is tried again.
        await self._client.patch(Node, key, "", {"metadata": {"labels": {ZONE: told[1]}}})
        return None


async def main() -> None:
    """Work for the cluster we run in, or for the one that kubectl would use."""
    transport = HttpTransport(find_endpoint(), user_agent="zone-labeller")
    try:
        await ZoneLabeller(ApiClient(transport)).reconciler.run()
    finally:
        await transport.close()


if __name__ == "__main__":
    asyncio.run(main())

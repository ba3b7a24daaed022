"""`/lens/v1` of the scheduler of an embedded cluster, at the address of its API server.

Callers are those of the API server, and its own authorisation says what they see.
"""

from __future__ import annotations

from aiohttp import web

from mooring.cluster.apiserver._auth import ANONYMOUS, MASTERS, Attributes, Authorize
from mooring.cluster.apiserver.requests import Caller
from mooring.ui.access import UNAUTHORIZED, Denial, Permitted
from mooring.ui.endpoints import refusal
from mooring.ui.lens import LensPages, needed, sight_of


class ClusterLens:
    """Answers requests below /lens/ of callers that the API server knows."""

    def __init__(self, pages: LensPages) -> None:
        self._pages = pages

    async def respond(
        self, request: web.BaseRequest, caller: Caller | None, authorize: Authorize | None
    ) -> web.StreamResponse:
        """What a caller may see; `authorize` is that of the server."""
        if caller is None or caller is ANONYMOUS:
            return refusal(UNAUTHORIZED)
        wanted = needed(request)
        allowed = [
            authorize is None
            or MASTERS in caller.groups
            or not authorize(
                caller,
                Attributes(verb=one.verb, path="", resource=one.resource, namespace=one.namespace),
            )
            for one in wanted
        ]
        sight = sight_of(request, allowed)
        if sight is None:
            return refusal(Permitted(caller.name, ()).denial(wanted[0]))
        answer = await self._pages.respond(request, sight)
        return refusal(answer) if isinstance(answer, Denial) else answer

"""Lists all objects of one kind, page by page; the reflector watches from there.

The server prepares the next page while this one is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Final, Generic, cast

import msgspec

from mooring.api import protobuf
from mooring.client._decoding import O, Reader, UnreadableProtobuf
from mooring.client.client import ApiClient, ListPage
from mooring.client.errors import AnswerTooLong, Garbled
from mooring.client.transport import MAX_ANSWER

if TYPE_CHECKING:
    from mooring.api.meta import Object

YIELD_EVERY: Final = 256  # objects handled before others on the loop get a turn
_FIRST_PAGE: Final = 500  # objects
_PAGE_BYTES: Final = MAX_ANSWER // 2  # wanted of a page, judged by the page before
_LONGEST_PAGE: Final = 10_000  # objects


class Query(msgspec.Struct, frozen=True):
    """Which objects of a kind are listed and watched."""

    kind: type[Object]
    namespace: str = ""
    labels: str = ""
    fields: str = ""


class Listed(msgspec.Struct, Generic[O]):
    """A complete list; *unread* objects could not be decoded, and have their metadata only."""

    objects: list[O]
    unread: list[O]
    version: str


class FirstList(Generic[O]):
    """A list that is begun before the reflector that will watch from it exists.

    It is an offer: if it fails, or an object cannot be read, the reflector lists again and reports
    what is wrong.
    """

    def __init__(self, client: ApiClient, query: Query, kind: type[O]) -> None:
        self.query: Query = query
        lister = Lister(client, query, Reader(kind))
        self._listing = asyncio.create_task(lister.list(), name=f"first list of {kind.KIND}")

    async def result(self) -> Listed[O] | None:
        """The complete list, or None."""
        await asyncio.wait([self._listing])
        if self._listing.cancelled() or self._listing.exception() is not None:
            return None
        listed = self._listing.result()
        return None if listed.unread else listed

    async def cancel(self) -> None:
        """Give it up."""
        self._listing.cancel()
        await self.result()


class Lister(Generic[O]):
    """Lists what a query means.

    Pages have `page_size` objects; without it, as many as make up some megabytes. `on_page` is
    called when one has come.
    """

    def __init__(
        self,
        client: ApiClient,
        query: Query,
        reader: Reader[O],
        *,
        page_size: int | None = None,
        on_page: Callable[[], None] | None = None,
    ) -> None:
        self._client = client
        self._query = query
        self._reader = reader
        self._page_size = page_size
        self._on_page = on_page

    async def list(self) -> Listed[O]:
        """All objects, in one version."""
        try:
            return await self._list_all()
        except (UnreadableProtobuf, Garbled) as error:
            if not self._reader.in_protobuf:
                raise
            self._reader.ask_for_json(error)
        return await self._list_all()

    async def _list_all(self) -> Listed[O]:
        listed: Listed[O] = Listed([], [], "")
        pages = self._pages()
        try:
            async for page in pages:
                await self._read_page(page, listed)
                listed.version = page.resource_version
        finally:
            await pages.aclose()
            protobuf.forget()
        return listed

    async def _pages(self) -> AsyncGenerator[ListPage, None]:
        limit, token = self._page_size or _FIRST_PAGE, ""
        coming = asyncio.create_task(self._page(limit, token))
        try:
            while True:
                try:
                    page = await coming
                except AnswerTooLong:
                    if limit == 1:
                        raise
                    limit = max(limit // 8, 1)  # large objects: the same page, in smaller ones
                    coming = asyncio.create_task(self._page(limit, token))
                    continue
                if self._on_page is not None:
                    self._on_page()
                if token := page.continue_:
                    limit = self._next_limit(page, limit)
                    coming = asyncio.create_task(self._page(limit, token))
                    await asyncio.sleep(0)  # so that it is sent
                yield page
                if not token:
                    return
        finally:
            coming.cancel()
            await asyncio.wait([coming])

    def _next_limit(self, page: ListPage, limit: int) -> int:
        """How many objects to ask for next: each page costs the server some milliseconds."""
        if self._page_size is not None or not page.items:
            return limit
        return max(1, min(_PAGE_BYTES * len(page.items) // page.size, _LONGEST_PAGE))

    async def _page(self, limit: int, token: str) -> ListPage:
        query = self._query
        return await self._client.list_page(
            query.kind,
            query.namespace,
            labels=query.labels,
            fields=query.fields,
            limit=limit,
            continue_=token,
            in_protobuf=self._reader.in_protobuf,
        )

    async def _read_page(self, page: ListPage, listed: Listed[O]) -> None:
        for count, raw in enumerate(page.items, start=1):
            if page.is_protobuf:
                listed.objects.append(self._reader.read_protobuf(raw))
            else:
                value, is_whole = self._reader.read(cast("msgspec.Raw", raw))
                if value is not None:
                    (listed.objects if is_whole else listed.unread).append(value)
            if count % YIELD_EVERY == 0:
                await asyncio.sleep(0)

"""A server that gives prepared answers below /lens/v1/, for commands in the process of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

Answer = tuple[int, bytes]


class StubScheduler(HTTPServer):
    """Answers by `answer`, a function of the path below /lens/v1/; `asked` are those paths."""

    def __init__(self, answer: Callable[[str], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: StubScheduler

    def do_GET(self) -> None:
        path = urlsplit(self.path).path.removeprefix("/lens/v1/")
        self.server.asked.append(path)
        status, body = self.server.answer(path)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Not on stderr."""


@contextmanager
def stub_scheduler(answer: Callable[[str], Answer]) -> Iterator[StubScheduler]:
    with StubScheduler(answer) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()

"""Asks the page of a process, by the address that the process printed."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit


def ask_page(address: str, path: str) -> Any:
    """The answer to a GET, after the token of the address was exchanged."""
    found = urlsplit(address)
    connection = http.client.HTTPConnection(str(found.hostname), found.port, timeout=10)
    try:
        token = found.fragment.removeprefix("token=")
        connection.request("POST", "/session", json.dumps({"token": token}))
        key = json.loads(connection.getresponse().read())["key"]
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()

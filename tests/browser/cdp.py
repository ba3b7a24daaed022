"""A headless Chromium and its pages, over the DevTools protocol; for tests and screenshots.

The protocol is spoken on a thread of its own, so that a test calls `page.press("g", "n")` and waits
for the answer. The browser talks to loopback alone: tests look at every request that it made.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
from tests.browser.finding import BrowserError, chromium

T = TypeVar("T")

FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
PATIENCE: Final = 60.0  # seconds for an answer of the browser
_LISTENING: Final = re.compile(r"DevTools listening on (ws://\S+)")
_NAMED: Final = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "Backspace": (8, ""),
    "Home": (36, ""),
    "End": (35, ""),
    "PageUp": (33, ""),
    "PageDown": (34, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    " ": (32, " "),
}
"""Keys by their names in the DOM: key code and text."""


class Chromium:
    """One browser process with a profile of its own, which is deleted at the end."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(
            prefix="mooring-browser-", ignore_cleanup_errors=True
        )
        self._process = subprocess.Popen(
            [chromium(), *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}  # by session
        try:
            self._run(self._connect(self._address()))
        except BaseException:
            self.close()
            raise

    def page(self, *, width: int = 1280, height: int = 800, dark: bool = False) -> Page:
        """A new tab, in a context of its own: it shares no storage with the others."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, attached["sessionId"], target["targetId"])
        self._pages[page.session] = page
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.prefer(dark=dark)
        return page

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """One command of the protocol; raises BrowserError if the browser refuses it."""
        return self._run(self._call(method, session, params))

    def close(self) -> None:
        """End the process, and the thread that speaks to it."""
        if hasattr(self, "_reader"):
            self._run(self._disconnect())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # its own session: only its children
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._profile.cleanup()

    # --- inside ----------------------------------------------------------------------------------

    def _address(self) -> str:
        lines: list[str] = []
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = _LISTENING.search(line)
            if found is not None:
                return found[1]
            lines.append(line.strip())
        raise BrowserError(f"the browser did not start: {' '.join(lines[-3:])}")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _connect(self, address: str) -> None:
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(address, max_msg_size=0)
        self._reader = asyncio.create_task(self._read())

    async def _disconnect(self) -> None:
        self._reader.cancel()
        await self._socket.close()
        await self._session.close()

    async def _call(self, method: str, session: str, params: Mapping[str, Any]) -> dict[str, Any]:
        number = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._answers[number] = answer
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        await self._socket.send_json(message)
        found = await answer
        if "error" in found:
            raise BrowserError(f"{method}: {found['error']['message']}")
        result: dict[str, Any] = found["result"]
        return result

    async def _read(self) -> None:
        async for message in self._socket:
            data = json.loads(message.data)
            if "id" in data:
                self._answers.pop(data["id"]).set_result(data)
                continue
            page = self._pages.get(data.get("sessionId", ""))
            if page is not None:
                page.notice(data["method"], data["params"])


class Page:
    """One tab."""

    def __init__(self, browser: Chromium, session: str, target: str) -> None:
        self.session = session
        self.requests: list[str] = []  # addresses
        self.problems: list[str] = []  # exceptions, refusals and complaints of the page
        self.transferred = 0  # bytes of all answers, as they came
        self._browser = browser
        self._target = target

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self.session, **params)

    def notice(self, method: str, params: dict[str, Any]) -> None:
        """Something happened in the page."""
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Network.loadingFinished":
                self.transferred += int(params["encodedDataLength"])
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                thrown = details.get("exception", {}).get("description", "")
                self.problems.append(f"{details['text']} {thrown}")
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    # --- what a person does ----------------------------------------------------------------------

    def goto(self, url: str) -> None:
        failed = self.call("Page.navigate", url=url).get("errorText")
        if failed:
            raise BrowserError(f"{url}: {failed}")

    def press(self, *keys: str, shift: bool = False, ctrl: bool = False) -> None:
        """Keys one after the other: characters, or names as in `_NAMED`."""
        modifiers = (8 if shift else 0) | (2 if ctrl else 0)
        for key in keys:
            code, text = _NAMED.get(key, (ord(key.upper()) if len(key) == 1 else 0, key))
            common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
            down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
            self.call("Input.dispatchKeyEvent", **down, **common)
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def write(self, text: str) -> None:
        """Into what has the focus, at once."""
        self.call("Input.insertText", text=text)

    def move_mouse(self, x: float, y: float, kind: str = "mouseMoved") -> None:
        button = "none" if kind == "mouseMoved" else "left"
        clicks = 0 if kind == "mouseMoved" else 1
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=clicks)

    def click(self, x: float, y: float) -> None:
        self.move_mouse(x, y, "mousePressed")
        self.move_mouse(x, y, "mouseReleased")

    # --- how the browser is ----------------------------------------------------------------------

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def prefer(self, *, dark: bool = False, reduced_motion: bool = False) -> None:
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {
                "name": "prefers-reduced-motion",
                "value": "reduce" if reduced_motion else "no-preference",
            },
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    # --- what it shows ---------------------------------------------------------------------------

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def wait_for(self, script: str, seconds: float = PATIENCE) -> None:
        """Wait until an expression is true, or something: an element, a text."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({script})"):
            if time.monotonic() > end:
                text = self.evaluate("document.body.innerText.slice(0, 600)")
                raise AssertionError(f"never true: {script}\n{self.problems}\n{text}")
            time.sleep(0.02)

    def text(self, selector: str = "body") -> str:
        found: str = self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")
        return found

    def tree(self) -> list[dict[str, Any]]:
        """The accessibility tree as screen readers get it: nodes with role and name."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            {
                "role": node.get("role", {}).get("value", ""),
                "name": node.get("name", {}).get("value", ""),
                "properties": {p["name"]: p["value"].get("value") for p in node["properties"]}
                if "properties" in node
                else {},
            }
            for node in nodes
            if not node.get("ignored")
        ]

    def screenshot(self, file: Path | None = None) -> bytes:
        """What is visible, as PNG."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if file is not None:
            file.write_bytes(data)
        return data


Opened = Callable[..., Page]

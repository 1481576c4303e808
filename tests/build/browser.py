"""A real Chromium without a window, driven by its DevTools protocol: opens pages, runs scripts, takes pictures."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

_PATIENCE_S = 60.0
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-debugging-port=0",
    "--enable-precise-memory-info",
    "--hide-scrollbars",
)


class BrowserPage:
    """One tab. `faults` are the errors and warnings of its console, and its exceptions."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.faults: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: dict[str, asyncio.Event] = {}
        self._reading = asyncio.ensure_future(self._read())

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(_PATIENCE_S):
            return await self._answers[number]

    async def begin(self) -> None:
        for domain in ("Page", "Runtime", "Log", "Performance"):
            await self.call(f"{domain}.enable")

    async def resize(self, width: int, height: int = 900) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def use_theme(self, theme: str) -> None:
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    async def open(self, url: str) -> None:
        """Until the page and its script are loaded."""
        loaded = self._events["Page.loadEventFired"] = asyncio.Event()
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(_PATIENCE_S):
            await loaded.wait()

    async def leave(self, script: str) -> None:
        """Runs a script that leads to another page, until that page is loaded."""
        loaded = self._events["Page.loadEventFired"] = asyncio.Event()
        await self.run(script)
        async with asyncio.timeout(_PATIENCE_S):
            await loaded.wait()

    async def run(self, script: str) -> Any:
        """The value of an expression, which may be a promise."""
        found = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in found:
            raise AssertionError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    async def until(self, script: str) -> None:
        """Until the expression is true, after changes of the document and four times a second."""
        await self.run(
            "new Promise((done, failed) => { const check = () => { if (" + script + ") { clearInterval(timer);"
            " clearTimeout(end); done(true); } }; const timer = setInterval(check, 100);"
            f" const end = setTimeout(() => failed('never true'), {int(_PATIENCE_S * 500)}); check(); }})"
        )

    async def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def point(self, x: float, y: float) -> None:
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def picture(self, file: Path) -> None:
        found = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(file.write_bytes, base64.b64decode(found["data"]))

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        async for message in self._socket:
            self._take(message.json())

    def _take(self, told: dict[str, Any]) -> None:
        if "id" in told:
            answer = self._answers.pop(told["id"])
            if "error" in told:
                answer.set_exception(AssertionError(f"{told['error']}"))
            else:
                answer.set_result(told["result"])
            return
        method, parameters = told["method"], told["params"]
        if method in self._events:
            self._events[method].set()
        if method == "Runtime.exceptionThrown":
            self.faults.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.faults.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.faults.append(str(parameters["args"]))


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Callable[[], Awaitable[BrowserPage]]]:
    """What opens tabs. `folder`: for the profile, which nothing else uses."""
    process = await asyncio.create_subprocess_exec(
        "chromium", *_FLAGS, f"--user-data-dir={folder}", "about:blank", stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        address = await _address(process.stderr)
        draining = asyncio.ensure_future(process.stderr.read())
        host = address.split("/")[2]
        async with aiohttp.ClientSession() as session, contextlib.AsyncExitStack() as opened:

            async def page() -> BrowserPage:
                async with session.put(f"http://{host}/json/new?about:blank") as answer:
                    target = await answer.json(content_type=None)
                socket = await opened.enter_async_context(
                    session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0)
                )
                tab = BrowserPage(socket)
                opened.push_async_callback(tab.close)
                await tab.begin()
                return tab

            yield page
        draining.cancel()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _address(stream: asyncio.StreamReader) -> str:
    async with asyncio.timeout(_PATIENCE_S):
        while line := (await stream.readline()).decode():
            if "DevTools listening on" in line:
                return line.split()[-1]
    raise AssertionError("Chromium has ended")

"""An HTTP server that answers what the test tells it to, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

Answer = web.StreamResponse | dict[str, Any] | tuple[int, Any] | tuple[int, Any, dict[str, str]]
POD = {"metadata": {"name": "p", "namespace": "a", "uid": "u", "resourceVersion": "5"}}


class Server:
    """Answers by `script`, one entry a request, the last for all that follow."""

    def __init__(self) -> None:
        self.script: list[Answer | Callable[[web.BaseRequest], Any]] = []
        self.seen: list[web.BaseRequest] = []
        self.bodies: list[Any] = []
        self.url = ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.seen.append(request)
        text = await request.text()
        self.bodies.append(json.loads(text) if text else None)
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if callable(said):
            said = await said(request)
        if isinstance(said, web.StreamResponse):
            return said
        code, body, headers = (200, said, {}) if isinstance(said, dict) else (*said, {})[:3]
        content = body if isinstance(body, str) else json.dumps(body)
        return web.Response(text=content, status=code, headers=headers)


def status(code: int, reason: str, **more: Any) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "because", **more}

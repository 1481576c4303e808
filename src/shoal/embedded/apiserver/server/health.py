"""Serves `/healthz`, `/livez` and `/readyz`: `ok`, or one line per check with `?verbose`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web
from multidict import MultiMapping

_NAMES = ("healthz", "livez", "readyz")
Check = Callable[[], str]
"""What is wrong; empty when nothing is."""


class ServerHealth:
    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks

    def paths(self) -> list[str]:
        return [path for name in _NAMES for path in (f"/{name}", *(f"/{name}/{check}" for check in self._checks))]

    def answer(self, path: str, query: Mapping[str, str]) -> web.Response | None:
        """The answer to a health path, or None if it is not one."""
        name, _, single = path.strip("/").partition("/")
        if name not in _NAMES:
            return None
        if single:
            return self._single(single)
        left_out = query.getall("exclude", []) if isinstance(query, MultiMapping) else []
        found = {check: "" if check in left_out else fault() for check, fault in self._checks.items()}
        failed = any(found.values())
        if not failed and "verbose" not in query:
            return web.Response(text="ok", content_type="text/plain")
        lines = [
            f"[-]{check} failed: {fault}" if fault else f"[+]{check} {'excluded: ' if check in left_out else ''}ok"
            for check, fault in found.items()
        ]
        lines.append(f"{name} check {'failed' if failed else 'passed'}")
        return web.Response(status=500 if failed else 200, text="\n".join(lines) + "\n", content_type="text/plain")

    def _single(self, name: str) -> web.Response | None:
        check = self._checks.get(name)
        if check is None:
            return None
        fault = check()
        if fault:
            return web.Response(status=500, text=f"internal server error: {fault}\n", content_type="text/plain")
        return web.Response(text="ok", content_type="text/plain")

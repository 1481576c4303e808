"""Serves health checks of a process in Kubernetes' format: `ok`, or one line for each check on request.

`/healthz` and `/livez` say whether the process should be restarted, `/readyz` whether it works. A standby process is
ready.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

import msgspec

_log = logging.getLogger("shoal.telemetry")
Check = Callable[[], str]
"""The fault; empty if there is none."""
LIVE, READY = ("healthz", "livez"), ("readyz",)


class HealthAnswer(msgspec.Struct, frozen=True):
    code: int
    text: str


class HealthChecks:
    """`live` are asked for `/healthz` and `/livez`, those and `ready` for `/readyz`."""

    def __init__(self, live: Mapping[str, Check], ready: Mapping[str, Check]) -> None:
        self._live = {"ping": lambda: "", **live}
        self._ready = {**self._live, **ready}

    def answer(self, path: str, *, is_verbose: bool = False, left_out: Collection[str] = ()) -> HealthAnswer | None:
        """To a path of health, `/readyz/caches` say; None if it is not one."""
        name, _, single = path.strip("/").partition("/")
        checks = self._live if name in LIVE else self._ready if name in READY else {}
        if single:
            return self._single(single, checks) if single in checks else None
        if not checks:
            return None
        found = {check: "" if check in left_out else _ask(check, look) for check, look in checks.items()}
        failed = any(found.values())
        if not failed and not is_verbose:
            return HealthAnswer(200, "ok")
        lines = [_line(check, fault, check in left_out) for check, fault in found.items()]
        lines.append(f"{name} check {'failed' if failed else 'passed'}")
        return HealthAnswer(500 if failed else 200, "\n".join(lines) + "\n")

    def _single(self, name: str, checks: Mapping[str, Check]) -> HealthAnswer:
        fault = _ask(name, checks[name])
        return HealthAnswer(500, f"internal server error: {fault}\n") if fault else HealthAnswer(200, "ok")


def _line(check: str, fault: str, is_left_out: bool) -> str:
    return f"[-]{check} failed: {fault}" if fault else f"[+]{check} {'excluded: ' if is_left_out else ''}ok"


def _ask(name: str, look: Check) -> str:
    try:
        return look()
    except Exception:  # noqa: BLE001 - a check that raises has failed, and the request needs an answer
        _log.exception("health check %s failed", name)
        return "the health check failed; the log has the error"

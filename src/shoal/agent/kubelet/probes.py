"""Probes containers as the kubelet does: by a command, an HTTP or gRPC request or a TCP connection."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from shoal.agent.kubelet.grpc_probe import grpc_fault
from shoal.agent.kubelet.runtime import PodRuntime, RunKey, StartRefused
from shoal.units.errors import TemporaryError

Obj = dict[str, Any]
_OUTPUT = 10 * 1024
_AGENT = "kube-probe/1.36"
Sleep = Callable[[float], Awaitable[None]]


class Probing(msgspec.Struct, frozen=True):
    """How often a container is probed, and how many results in a row decide."""

    delay_s: float
    period_s: float
    timeout_s: float
    successes: int
    failures: int

    @classmethod
    def of(cls, probe: Obj) -> Probing:
        return cls(
            probe.get("initialDelaySeconds") or 0,
            probe.get("periodSeconds") or 10,
            probe.get("timeoutSeconds") or 1,
            probe.get("successThreshold") or 1,
            probe.get("failureThreshold") or 3,
        )


async def verdicts(
    probe: Obj, check: Callable[[], Awaitable[str | None]], sleep: Sleep, decide: Callable[[bool, str], bool]
) -> None:
    """Probe until `decide` returns True. It gets each decision: whether the threshold of successes was reached, or that
    of failures, with the last failure's message. A probe without a result counts for neither."""
    every = Probing.of(probe)
    await sleep(every.delay_s)
    good = bad = 0
    while True:
        fault = await check()
        if fault is not None:
            good, bad = (0, bad + 1) if fault else (good + 1, 0)
            if (good >= every.successes or bad >= every.failures) and decide(not fault, fault):
                return
        await sleep(every.period_s)


async def check_once(probe: Obj, container: Obj, runtime: PodRuntime, key: RunKey, host: str) -> str | None:
    """The failure's message; empty if the probe succeeded, None if the runtime could not probe."""
    timeout_s = Probing.of(probe).timeout_s
    if "grpc" in probe:
        return await grpc_fault(probe["grpc"], host, _AGENT, timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            if "exec" in probe:
                return await command_fault(probe["exec"].get("command") or (), runtime, key)
            if "httpGet" in probe:
                code = await http_status(probe["httpGet"], container, host, _AGENT)
                return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"
            if "tcpSocket" in probe:
                return await _tcp(probe["tcpSocket"], container, host)
    except TimeoutError:
        return f"timed out after {timeout_s:g}s"
    except TemporaryError:
        return None
    except OSError as error:
        return str(error.strerror or error)
    return "the probe has no handler"


def port_of(port: int | str, container: Obj) -> int:
    """A port by number or by the name of a container's port; 0 if there is none of that name."""
    if isinstance(port, int) or str(port).isdigit():
        return int(port)
    return next((int(one["containerPort"]) for one in container.get("ports") or () if one.get("name") == port), 0)


async def command_fault(command: Sequence[str], runtime: PodRuntime, key: RunKey) -> str:
    """What a command said that failed in a container; empty if it succeeded. Raises TemporaryError."""
    try:
        running = await runtime.run(key, command, is_short=True)
    except StartRefused as refused:
        return refused.message
    try:
        running.end_input()
        said = b""
        while (part := await running.read()) is not None:
            said = (said + part[1])[:_OUTPUT]
        code = await running.code()
        return "" if code == 0 else (said.decode(errors="replace").strip() or f"exit code {code}")
    finally:
        running.kill()


async def _tcp(action: Obj, container: Obj, host: str) -> str:
    _, writer = await asyncio.open_connection(action.get("host") or host, port_of(action["port"], container))
    writer.close()
    return ""


async def http_status(action: Obj, container: Obj, host: str, agent: str) -> int:
    """The status of the answer; 0 if it has none. Raises OSError."""
    to, port = action.get("host") or host, port_of(action["port"], container)
    tls = None
    if action.get("scheme") == "HTTPS":
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(to, port, ssl=tls)
    try:
        headers = {"Host": f"{to}:{port}", "User-Agent": agent, "Accept": "*/*", "Connection": "close"}
        headers |= {one["name"]: one["value"] for one in action.get("httpHeaders") or ()}
        path = action.get("path") or "/"
        lines = [f"GET {path if path.startswith('/') else f'/{path}'} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await writer.drain()
        words = (await reader.readline()).split()
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    finally:
        writer.close()
        with suppress(OSError, ssl.SSLError):
            await writer.wait_closed()

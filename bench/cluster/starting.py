"""From the start of the command on an empty state to `readyz` saying ok to a client with the kubeconfig."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Protocol

from bench.cluster.echo import EchoProcess
from bench.cluster.figures import Figure
from bench.cluster.wire import Connection, Target
from build.cluster_server import ServerProcess


class _Server(Protocol):
    kubeconfig: Path

    def stop(self) -> object: ...


async def start_figure(folder: Path, times: int) -> Figure:
    ours = [await _seconds(ServerProcess, _made(folder / f"start-{turn}")) for turn in range(times)]
    bare = await _seconds(EchoProcess, _made(folder / "start-bare"))
    beside = f"slowest of {times} {max(ours):.2f} s; bare aiohttp with TLS {bare:.2f} s"
    return Figure("start to readyz ok, empty state", median(ours), " s", most=1.5, beside=beside)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def _seconds(start: Callable[[Path], _Server], folder: Path) -> float:
    started = perf_counter()
    server = start(folder)
    try:
        line = await Connection.open(Target(server.kubeconfig))
        code, body = await line.answer(b"GET", b"/readyz")
        if code not in (200, 201):
            raise RuntimeError(f"not ready: {body!r}")
        line.close()
        return perf_counter() - started
    finally:
        server.stop()

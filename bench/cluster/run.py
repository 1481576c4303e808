"""All figures of the embedded API server, each beside its bar.

    python -m bench.cluster [--quick]

Starts `shoal up` on a state folder of its own and talks to it as clients do. Server and clients share the machine: with
fewer than two cores to spare the figures are too low, so the load before the run is printed with them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import msgspec
import uvloop
from rich.console import Console

from bench.cluster import objects
from bench.cluster.echo import EchoProcess
from bench.cluster.figures import Figure, table
from bench.cluster.following import newest_revision
from bench.cluster.heartbeat import heartbeat_figures
from bench.cluster.reading import list_figure, memory_figure
from bench.cluster.starting import start_figure
from bench.cluster.watching import watch_figures
from bench.cluster.wire import Connection, Target
from bench.cluster.writing import bare_rate, binding_figure, creation_figure
from build.cluster_server import ServerProcess

_FLUSHES = 50


class _Size(msgspec.Struct, frozen=True):
    starts: int
    pods: int
    bare: int
    kubectl: int
    live: int
    heartbeat_s: float


_FULL = _Size(5, 10_000, 10_000, 3, 5_000, 8.0)
_QUICK = _Size(1, 2_000, 3_000, 1, 1_000, 2.0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 pods instead of 10,000, and less of everything")
    chosen = parser.parse_args(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 220)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = Path(name)
        load, cores = os.getloadavg()[0], os.cpu_count()
        console.print(f"{cores} cores, load {load:.1f} before, a flush to disk {_flush_ms(folder):.1f} ms")
        figures = uvloop.run(_figures(folder, _QUICK if chosen.quick else _FULL))
    console.print(table(figures))
    return 0


async def _figures(folder: Path, size: _Size) -> list[Figure]:
    _note("starting")
    start = await start_figure(folder, size.starts)
    _note("bare HTTP")
    echo = EchoProcess(folder / "bare")
    try:
        bare = Target(echo.kubeconfig)
        bare_creations = await bare_rate(bare, objects.create_pods(0, size.bare))
        bare_bindings = await bare_rate(bare, objects.bind_pods(0, size.bare, objects.NODES))
        (folder / "server").mkdir()
        server = ServerProcess(folder / "server")
        try:
            figures = await _of_server(server, size, bare_creations, bare_bindings)
            _note("heartbeat")
            pids = server.process.pid, echo.process.pid
            beats = await heartbeat_figures(Target(server.kubeconfig), pids[0], bare, pids[1], size.heartbeat_s)
        finally:
            server.stop()
    finally:
        echo.stop()
    return [start, *figures, *beats]


async def _of_server(server: ServerProcess, size: _Size, bare_creations: float, bare_bindings: float) -> list[Figure]:
    target, pid, pods = Target(server.kubeconfig), server.process.pid, size.pods
    _note("creating")
    creation = await creation_figure(target, pid, bare_creations, pods)
    line = await Connection.open(target)
    before = await newest_revision(line)
    line.close()
    _note("binding")
    binding = await binding_figure(target, pid, bare_bindings, pods)
    _note("listing")
    listing = await list_figure(target, server.kubeconfig, pods, size.kubectl)
    memory = memory_figure(pid, objects.NODES, pods)
    _note("watching")
    watching = await watch_figures(target, before, pods, size.live, pods)
    reading = [memory] if listing is None else [listing, memory]
    return [binding, creation, *reading, *watching]


def _flush_ms(folder: Path) -> float:
    path = folder / "flush"
    with path.open("wb") as file:
        started = perf_counter()
        for _ in range(_FLUSHES):
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
        return (perf_counter() - started) / _FLUSHES * 1e3


def _note(text: str) -> None:
    print(f"  {text}", file=sys.stderr)

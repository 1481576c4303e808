"""All figures of the embedded cluster with nodes and controllers in it, each beside its bar.

    python -m bench.alive [--quick]

Each figure has a `shoal up` of its own, in one process, as users start it. What it is printed beside is the same
machine in the same run with less to do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import msgspec
import uvloop
from rich.console import Console

from bench.alive import loads
from bench.cluster.accounts import processor_s, resident_mb
from bench.cluster.figures import Figure, table
from bench.cluster.wire import Connection, Target
from build.cluster_server import ServerProcess

_LOOK_S = 0.1
_PATIENCE_S = 300.0


class _Size(msgspec.Struct, frozen=True):
    nodes: int
    idle_s: float
    jobs: int
    gpu_pods: int
    cpu_pods: int


_FULL = _Size(1000, 40.0, 2000, 8000, 2000)
_QUICK = _Size(100, 10.0, 200, 800, 200)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    chosen = parser.parse_args(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 220)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    with tempfile.TemporaryDirectory(prefix="shoal-alive-") as name:
        figures = uvloop.run(_figures(Path(name), _QUICK if chosen.quick else _FULL))
    console.print(table(figures))
    return 0


async def _figures(folder: Path, size: _Size) -> list[Figure]:
    _note("starting")
    figures = [await _start(folder)]
    _note("a job of many pods")
    figures.append(await _job(folder, size))
    _note("many nodes")
    return [*figures, *await _fleet(folder, size)]


async def _start(folder: Path) -> Figure:
    started = perf_counter()
    async with _cluster(folder / "bare", bare=True):
        bare_s = perf_counter() - started
    started = perf_counter()
    async with _cluster(folder / "start", nodes="16xp5.48xlarge") as (line, _):
        up_s = perf_counter() - started
        await loads.create(line, loads.JOBS, loads.job("first", 16, 300))
        await _until(lambda: _all_ready(line, 16, "first", 16))
        total_s = perf_counter() - started
    beside = f"command ready after {up_s:.2f} s; an API server alone {bare_s:.2f} s"
    return Figure("16 nodes Ready and 16 pods of a first job Running", total_s, " s", most=5, beside=beside)


async def _all_ready(line: Connection, nodes: int, name: str, pods: int) -> bool:
    job = await loads.status(line, loads.JOBS, name)
    return int(job.get("ready", 0)) == pods and await loads.ready_nodes(line) == nodes


async def _job(folder: Path, size: _Size) -> Figure:
    nodes = -(-size.jobs // 8)
    async with _cluster(folder / "job", nodes=f"{nodes}xp5.48xlarge") as (line, pid):
        used_s, started = processor_s(pid), perf_counter()
        await loads.create(line, loads.JOBS, loads.job("many", size.jobs, 1))
        await _until(lambda: _is_complete(line, "many", size.jobs))
        total_s = perf_counter() - started
        each_ms = (processor_s(pid) - used_s) / size.jobs * 1e3
    title = f"{size.jobs:,} one-GPU pods of a job: created, bound, run 1 s, succeeded"
    beside = f"{size.jobs / total_s:,.0f} pods/s, {each_ms:.1f} ms of processor a pod, on {nodes} nodes"
    return Figure(title, total_s, " s", most=20, beside=beside)


async def _is_complete(line: Connection, name: str, pods: int) -> bool:
    status = await loads.status(line, loads.JOBS, name)
    return int(status.get("succeeded", 0)) == pods and bool(status.get("completionTime"))


async def _fleet(folder: Path, size: _Size) -> list[Figure]:
    async with _cluster(folder / "idle", bare=True) as (line, pid):
        bare_mb = resident_mb(pid)
    async with _cluster(folder / "fleet", nodes=f"{size.nodes}xp5.48xlarge") as (line, pid):
        await _until(lambda: _are_ready(line, size.nodes))
        await asyncio.sleep(5)
        used_s, started = processor_s(pid), perf_counter()
        await asyncio.sleep(size.idle_s)
        share = 100 * (processor_s(pid) - used_s) / (perf_counter() - started)
        empty_mb = resident_mb(pid)
        started = perf_counter()
        await loads.create(line, loads.DEPLOYMENTS, loads.deployment("gpu", size.gpu_pods, {"nvidia.com/gpu": "1"}))
        await loads.create(line, loads.DEPLOYMENTS, loads.deployment("cpu", size.cpu_pods, {"cpu": "1"}))
        await _until(lambda: _are_available(line, {"gpu": size.gpu_pods, "cpu": size.cpu_pods}))
        filled_s = perf_counter() - started
        full_mb = resident_mb(pid)
    pods = size.gpu_pods + size.cpu_pods
    idle = f"one process, over {size.idle_s:.0f} s; leases every 40 s, status every 5 min"
    memory = f"{empty_mb:,.0f} MB before the pods, a server alone {bare_mb:,.0f} MB; filled in {filled_s:.1f} s"
    return [
        Figure(f"{size.nodes:,} nodes idle, whole process: share of a core", share, " %", most=10, beside=idle),
        Figure(f"resident, {size.nodes:,} nodes + {pods:,} running pods", full_mb, " MB", most=600, beside=memory),
    ]


async def _are_ready(line: Connection, nodes: int) -> bool:
    return await loads.ready_nodes(line) == nodes


async def _are_available(line: Connection, wanted: dict[str, int]) -> bool:
    for name, pods in wanted.items():
        if int((await loads.status(line, loads.DEPLOYMENTS, name)).get("readyReplicas", 0)) < pods:
            return False
    return True


@asynccontextmanager
async def _cluster(folder: Path, nodes: str = "", *, bare: bool = False) -> AsyncIterator[tuple[Connection, int]]:
    arguments = () if bare else ("--nodes", nodes)
    server = ServerProcess(_made(folder), *arguments, is_bare=bare)
    try:
        line = await Connection.open(Target(server.kubeconfig))
        yield line, server.process.pid
        line.close()
    finally:
        server.stop()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def _until(is_so: Callable[[], Awaitable[bool]]) -> None:
    ends = perf_counter() + _PATIENCE_S
    while not await is_so():
        if perf_counter() > ends:
            raise RuntimeError(f"not so after {_PATIENCE_S:.0f} s")
        await asyncio.sleep(_LOOK_S)


def _note(text: str) -> None:
    print(f"  {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

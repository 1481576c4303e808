"""The scheduler is replaced while 200 pods a second arrive, as a rolling update of its Deployment does.

python -m bench.upgrade [--quick] [--nodes N] [--rate R]

`shoal up` without nodes and controllers, two replicas of `shoal run --controllers scheduler` of the old version, two of
the new one, and the client that creates pods and watches them are processes on one machine. As with `maxSurge: 1` and
`maxUnavailable: 0`, a replica is stopped when a new one answers `/readyz`; the active one is stopped first, so that
the lease changes its holder twice. Both versions are this build.

A placement is lost if its pod is not bound at the end. It is duplicated if a pod changes its node, if two pods hold
the same GPU, or if a node has more pods than GPUs. The gap is the longest time without a binding while pods wait.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from urllib.error import URLError
from urllib.request import urlopen

import msgspec
import uvloop
from rich.console import Console

from bench.cluster import objects
from bench.cluster.accounts import processor_s
from bench.cluster.figures import Figure, table
from bench.cluster.storm import connections, paced, storm
from bench.cluster.wire import Target
from bench.live.process import SCHEDULER, RunProcess
from build.cluster_server import ServerProcess
from build.free_ports import free_port
from shoal.client.http.api import KubeApi
from shoal.client.http.kubeconfig import read_kubeconfig
from shoal.client.item import Item
from shoal.client.kind import PODS

_GAP_S = 2.0
_BEFORE_S, _AFTER_S, _PATIENCE_S = 4.0, 6.0, 120.0
_GPUS, _IN_FLIGHT = 8, 32


class Load(msgspec.Struct, frozen=True):
    nodes: int
    rate: int
    """Pods a second."""
    lasts_s: float

    @property
    def pods(self) -> int:
        return int(self.rate * self.lasts_s)


class Replica:
    """One pod of the Deployment."""

    def __init__(self, kubeconfig: Path, folder: Path, name: str) -> None:
        port = free_port()
        self.name = name
        self._url = f"http://127.0.0.1:{port}/readyz"
        # Two such processes must not have the same identity.
        arguments = ("--leader-elect", "--metrics-address", f"127.0.0.1:{port}")
        self._run = RunProcess(kubeconfig, folder / f"{name}.log", *arguments)

    async def ready(self) -> None:
        """As the kubelet's readiness probe sees it: also while another replica is active."""
        ends = perf_counter() + _PATIENCE_S
        while perf_counter() < ends:
            if await asyncio.to_thread(self._answers):
                return
            await asyncio.sleep(0.1)
        raise RuntimeError(f"{self.name} does not get ready")

    def _answers(self) -> bool:
        try:
            with urlopen(self._url, timeout=1) as answer:  # noqa: S310 - our own address
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    @property
    def pid(self) -> int:
        return self._run.pid

    async def stop(self) -> None:
        await asyncio.to_thread(self._run.stop)


class Placements:
    """What a watch of all pods has seen."""

    def __init__(self) -> None:
        self.created: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        self.node_of: dict[str, str] = {}
        self.devices: dict[str, str] = {}
        self.moved: set[str] = set()
        self.changed = asyncio.Event()

    def take(self, item: Item, now: float) -> None:
        pod = item.obj()
        name, node = item.name, pod["spec"].get("nodeName", "")
        self.created.setdefault(name, now)
        if not node:
            return
        if self.node_of.setdefault(name, node) != node:
            self.moved.add(name)
        self.devices[name] = (pod["metadata"].get("annotations") or {}).get("shoal.dev/devices", "")
        self.bound.setdefault(name, now)
        self.changed.set()

    async def follow(self, api: KubeApi, since: int) -> None:
        async for changes in api.watch(PODS, since):
            now = perf_counter()
            for change in changes:
                if change.item is not None and change.kind != "BOOKMARK":
                    self.take(change.item, now)

    def duplicated(self) -> int:
        """Pods that share a GPU or are too many on their node."""
        pods = Counter(self.node_of.values())
        holders: dict[tuple[str, str], int] = defaultdict(int)
        for name, text in self.devices.items():
            for container in json.loads(text).values() if text.startswith("{") else ():
                for ids in container.values():
                    for one in ids:
                        holders[self.node_of[name], one] += 1
        shared = sum(count - 1 for count in holders.values() if count > 1)
        return len(self.moved) + shared + sum(max(0, count - _GPUS) for count in pods.values())

    def gaps(self, since: float) -> list[float]:
        """Between two bindings that follow each other, as far as a pod waited in between; longest first."""
        moments = sorted(at for at in self.bound.values() if at >= since)
        arrivals = sorted(self.created.values())
        found = []
        for before, after in pairwise(moments):
            waiting = next((at for at in arrivals if before < at < after), None)
            found.append(after - max(before, waiting or before))
        return sorted(found, reverse=True)


async def measure(kubeconfig: Path, folder: Path, load: Load) -> list[Figure]:
    target = Target(kubeconfig)
    lines = await connections(target, _IN_FLIGHT)
    await storm(lines, objects.create_nodes(load.nodes))
    await storm(lines, objects.open_nodes(load.nodes))
    old = [Replica(kubeconfig, folder, f"old-{at}") for at in range(2)]
    await old[0].ready()
    await old[1].ready()
    api = KubeApi(read_kubeconfig([kubeconfig]), random.Random())
    seen = Placements()
    since = (await api.list(PODS)).version
    following = asyncio.ensure_future(seen.follow(api, since))
    arriving = asyncio.ensure_future(paced(lines, objects.create_pods(0, load.pods, SCHEDULER), load.rate))
    new: list[Replica] = []
    taken_over_s: list[float] = []
    try:
        await asyncio.sleep(_BEFORE_S)
        begun = perf_counter()
        for at, one in enumerate(old):
            new.append(Replica(kubeconfig, folder, f"new-{at}"))
            await new[-1].ready()
            successors = [other for other in (*old, *new) if other not in old[: at + 1]]
            had = [processor_s(other.pid) for other in successors]
            await one.stop()
            await _next_binding(seen, perf_counter())
            spent = [processor_s(other.pid) - before for other, before in zip(successors, had, strict=True)]
            taken_over_s.append(max(spent))
            await asyncio.sleep(_AFTER_S)
        lasted_s = perf_counter() - begun
        arrived_s = await arriving
        await _until_bound(seen, load.pods)
    finally:
        following.cancel()
        arriving.cancel()
        for one in new:
            await one.stop()
        await api.close()
        for line in lines:
            line.close()
    gaps = seen.gaps(begun)
    waits = sorted(seen.bound[name] - at for name, at in seen.created.items() if name in seen.bound)
    lost = load.pods - len(seen.bound)
    beside = (
        f"{load.pods:,} pods on {load.nodes:,} nodes at {load.pods / arrived_s:.0f} a second; update {lasted_s:.0f} s"
    )
    return [
        Figure("replaced under load: placements lost", lost, most=0, beside=beside),
        Figure("... placed twice", seen.duplicated(), most=0, beside="pod, GPU or node"),
        Figure("... longest gap", gaps[0], " s", most=_GAP_S, beside=f"the next longest {gaps[1]:.2f} s"),
        Figure("... processor time of the successor until it binds", max(taken_over_s), " s", beside="caches included"),
        Figure("... longest wait of a pod", waits[-1], " s", beside=f"median {1000 * waits[len(waits) // 2]:.0f} ms"),
    ]


async def _next_binding(seen: Placements, since: float) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while max(seen.bound.values(), default=0.0) < since:
            seen.changed.clear()
            await seen.changed.wait()


async def _until_bound(seen: Placements, pods: int) -> None:
    """Or until none was bound for a while."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            while len(seen.bound) < pods:
                seen.changed.clear()
                await seen.changed.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200 nodes instead of 1,000, and 50 pods a second")
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--rate", type=int, default=0)
    chosen = parser.parse_args(arguments)
    nodes, rate = (200, 50) if chosen.quick else (1_000, 200)
    load = Load(chosen.nodes or nodes, chosen.rate or rate, 30.0)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 220)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    with tempfile.TemporaryDirectory(prefix="shoal-upgrade-") as name:
        folder = Path(name)
        server = ServerProcess(folder, "--history-events", "400000")
        try:
            figures = uvloop.run(measure(server.kubeconfig, folder, load))
        finally:
            server.stop()
    console.print(table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())

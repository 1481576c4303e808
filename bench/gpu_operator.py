"""The GPU operator of a cluster with 500 simulated nodes, each figure beside its bar.

python -m bench.gpu_operator [--quick]

`shoal up` and `shoal run --controllers operator` are processes of their own. An object is up to date when it has what
the changed policy asks for. With `--quick` there are 50 nodes, and it is also measured when all pods are ready: the
pods of 500 nodes need more processor time of the simulated nodes than of the operator.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import perf_counter

import msgspec
from rich.console import Console

import bench.cluster  # noqa: F401 - makes the helpers of the tests importable
from bench.cluster.accounts import most_resident_mb, processor_s
from bench.cluster.figures import Figure, table
from build.living_cluster import living
from build.shoal_process import ShoalProcess
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES
from shoal.client.http.api import KubeApi
from shoal.client.http.kubeconfig import read_kubeconfig
from shoal.client.item import Obj
from shoal.client.kind import DAEMON_SETS, NAMESPACES, NODES
from shoal.client.port import Patch

_NODES, _FEW = 500, 50
_CHANGE_S, _MEMORY_MB, _IDLE_PERCENT = 30, 120, 1
_IDLE_S = 30.0
_LONGEST_S, _SETTLED_S, _COMPONENTS = 900.0, 60.0, 8
_SPACE, _NAME = "gpu-operator", "cluster-policy"
_STAGES = "shoal.dev/gpu-stages"
_CHANGE: Obj = {
    "daemonsets": {"labels": {"revision": "2"}, "rollingUpdate": {"maxUnavailable": "100%"}},
    "dcgmExporter": {"env": [{"name": "DCGM_EXPORTER_INTERVAL", "value": "5000"}]},
    "mig": {"strategy": "mixed"},
    "nodeStatusExporter": {"enabled": True},
}


class Measured(msgspec.Struct):
    """In seconds, MB and percent of a core."""

    created: float = 0.0
    ready: float = 0.0
    changed: float = 0.0
    replaced: float = 0.0
    memory: float = 0.0
    idle: float = 0.0
    stages: float = 0.0


async def measure(kubeconfig: Path, process: ShoalProcess, nodes: int) -> Measured:
    api = KubeApi(read_kubeconfig([kubeconfig]), random.Random())
    found = Measured()
    try:
        await api.create(NAMESPACES, {"metadata": {"name": _SPACE}})
        begun = perf_counter()
        await api.create(CLUSTER_POLICIES, {"metadata": {"name": _NAME}, "spec": {}})
        found.created = await _until(lambda: _all_created(api, nodes), begun)
        if nodes == _FEW:
            found.ready = await _until(lambda: _is_ready(api), begun)
        begun = perf_counter()
        await api.patch(CLUSTER_POLICIES, "", _NAME, Patch("merge", {"spec": _CHANGE}))
        found.changed = await _until(lambda: _all_changed(api), begun)
        if nodes == _FEW:
            found.replaced = await _until(lambda: _is_ready(api), begun)
            found.stages = await _until(lambda: _have_stages(api, nodes), begun)
        await asyncio.sleep(_SETTLED_S)
        found.idle = await _used_percent(process)
        found.memory = most_resident_mb(process.process.pid)
    finally:
        await api.close()
    return found


async def _until(is_so: Callable[[], Awaitable[bool]], begun: float) -> float:
    while not await is_so():
        if perf_counter() - begun > _LONGEST_S:
            raise RuntimeError(f"not so after {_LONGEST_S:g} s")
        await asyncio.sleep(0.2)
    return perf_counter() - begun


async def _all_created(api: KubeApi, nodes: int) -> bool:
    sets = await _sets(api)
    return len(sets) == _COMPONENTS and all(one["status"].get("currentNumberScheduled") == nodes for one in sets)


async def _is_ready(api: KubeApi) -> bool:
    status = (await api.get(CLUSTER_POLICIES, "", _NAME)).obj().get("status") or {}
    return bool(status.get("state") == "ready") and all(map(_is_rolled_out, await _sets(api)))


def _is_rolled_out(one: Obj) -> bool:
    status = one["status"]
    # The driver is replaced by upgrades only.
    is_updated = status.get("updatedNumberScheduled", 0) == status["desiredNumberScheduled"]
    return bool(is_updated or one["spec"]["updateStrategy"]["type"] == "OnDelete")


async def _all_changed(api: KubeApi) -> bool:
    sets = {one["metadata"]["name"]: one for one in await _sets(api)}
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in sets.values()]
    return "nvidia-node-status-exporter" in sets and all(one.get("revision") == "2" for one in labels)


async def _sets(api: KubeApi) -> list[Obj]:
    return [one.obj() for one in (await api.list(DAEMON_SETS, _SPACE)).items]


async def _have_stages(api: KubeApi, nodes: int) -> bool:
    """Whether all layers of all nodes are ready, by their annotation."""
    found = 0
    for item in (await api.list(NODES)).items:
        text = (item.obj()["metadata"].get("annotations") or {}).get(_STAGES)
        found += text is not None and "layer" not in msgspec.json.decode(text)
    return found == nodes


async def _used_percent(process: ShoalProcess) -> float:
    before = processor_s(process.process.pid)
    await asyncio.sleep(_IDLE_S)
    return 100 * (processor_s(process.process.pid) - before) / _IDLE_S


def figures(found: Measured) -> list[Figure]:
    measured = [
        Figure("a changed policy: every object up to date", found.changed, " s", most=_CHANGE_S),
        Figure("memory of the operator at its peak", found.memory, " MB", most=_MEMORY_MB),
        Figure("idle, of a core", found.idle, " %", most=_IDLE_PERCENT),
        Figure("a new policy: all pods created", found.created, " s"),
    ]
    if not found.ready:
        return measured
    return [
        *measured,
        Figure("a new policy: all pods ready", found.ready, " s"),
        Figure("a changed policy: all pods replaced", found.replaced, " s"),
        Figure("a changed policy: all nodes report that all layers are ready", found.stages, " s"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{_FEW} nodes instead of {_NODES}")
    nodes = _FEW if parser.parse_args(arguments).quick else _NODES
    options = ("--operator-namespace", _SPACE, "--metrics-address", "none", "--no-leader-elect")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with living(place, f"{nodes}xp5.48xlarge", "--memory") as server:
            process = ShoalProcess(server.kubeconfig, "run", "--controllers", "operator", *options)
            try:
                if not process.is_ready():
                    raise RuntimeError(process.said)
                found = asyncio.run(measure(server.kubeconfig, process, nodes))
            finally:
                process.stop()
    Console().print(table(figures(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

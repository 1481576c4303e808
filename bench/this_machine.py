"""Pods on the machine that runs `shoal up --this-machine`, each figure beside its bar.

python -m bench.this_machine [--quick]

Pods run as processes, and in containers where containerd is installed. A Job is timed from the request that creates it
to the first line of its program, which writes the time to a file. The processor time is that of the server and of all
supervisors while the pods sleep.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, time
from typing import Any

from rich.console import Console

import bench.cluster  # noqa: F401 - makes the helpers of the tests importable
from bench.cluster.figures import Figure, table
from bench.this_machine_containers import measure_containers, missing_for_containers
from bench.this_machine_pods import pods_until, processor_s
from build.cluster_server import ServerProcess
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.kind import JOBS, NAMESPACES, PODS
from shoal.client.port import Api, Patch

_START_S, _IDLE_PERCENT = 0.3, 3.0
_IDLE_OVER_S = 20.0
Obj = dict[str, Any]


def _template(*command: str) -> Obj:
    """With a limit whose use is measured while the pod runs."""
    limits = {"limits": {"ephemeral-storage": "1Gi"}}
    main = {"name": "main", "image": "none", "command": [*command], "resources": limits}
    return {"spec": {"runtimeClassName": "process", "restartPolicy": "Never", "containers": [main]}}


async def start_s(api: Api, folder: Path, number: int) -> float:
    """From the creation of a Job to its running program."""
    file = folder / f"job-{number}"
    program = f"import time; open({str(file)!r}, 'w').write(str(time.time()))"
    job = {"metadata": {"name": f"job-{number}"}, "spec": {"template": _template(sys.executable, "-S", "-c", program)}}
    begun = time()
    await api.create(JOBS, {**job, "metadata": {"name": f"job-{number}", "namespace": "default"}})

    def has_ended(pods: dict[str, Obj]) -> bool:
        return any(
            name.startswith(f"job-{number}-") and pod.get("status", {}).get("phase") == "Succeeded"
            for name, pod in pods.items()
        )

    await pods_until(api, has_ended)
    return float(file.read_text()) - begun


async def sleeping(api: Api, count: int) -> float:
    """Create pods that sleep; the time until all run."""
    begun = monotonic()
    for number in range(count):
        meta = {"name": f"sleeps-{number}", "namespace": "default"}
        await api.create(PODS, {"metadata": meta, **_template("sleep", "3600")})

    def all_run(pods: dict[str, Obj]) -> bool:
        running = sum(
            name.startswith("sleeps-") and pod.get("status", {}).get("phase") == "Running" for name, pod in pods.items()
        )
        return bool(running == count)

    await pods_until(api, all_run)
    return monotonic() - begun


async def measure(folder: Path, *, jobs: int, pods: int) -> list[Figure]:
    server = ServerProcess(folder, "--this-machine", "--no-foreign-kinds", "--memory", is_bare=False)
    api = KubeApi(locate(server.kubeconfig), random.Random())
    try:
        allowed = {"metadata": {"labels": {"shoal.dev/process-pods": "allowed"}}}
        await api.patch(NAMESPACES, "", "default", Patch("merge", allowed))
        times = sorted([await start_s(api, folder, number) for number in range(jobs)])
        ready = await sleeping(api, pods)
        before, begun = processor_s(server.process.pid), monotonic()
        await asyncio.sleep(_IDLE_OVER_S)
        used = 100 * (processor_s(server.process.pid) - before) / (monotonic() - begun)
        for number in range(pods):
            await api.delete(PODS, "default", f"sleeps-{number}")
        await pods_until(api, lambda seen: not any(name.startswith("sleeps-") for name in seen))
    finally:
        await api.close()
        server.stop()
    beside = f"{jobs} Jobs, one after the other, median {times[len(times) // 2]:.2f} s"
    return [
        Figure("Job created to process running, slowest", times[-1], " s", most=_START_S, beside=beside),
        Figure(f"{pods} pods created and running", ready, " s"),
        Figure(f"{pods} pods idle, Shoal's processes", used, " % of a core", most=_IDLE_PERCENT,
               beside=f"over {_IDLE_OVER_S:.0f} s"),
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer Jobs and pods")
    chosen = parser.parse_args(arguments)
    jobs, pods, containers = (3, 20, 5) if chosen.quick else (10, 200, 200)
    with tempfile.TemporaryDirectory(prefix="this-machine-") as name:
        figures = asyncio.run(measure(Path(name), jobs=jobs, pods=pods))
    missing = missing_for_containers()
    if not missing:
        with tempfile.TemporaryDirectory(prefix="this-machine-") as name:
            figures += asyncio.run(measure_containers(Path(name), jobs=jobs, pods=containers))
    Console(highlight=False).print(table(figures))
    if missing:
        print(f"skipped: Job created to container running: {missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

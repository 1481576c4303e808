"""Jobs that run in containers of containerd on this machine.

A Job is timed from the request that creates it to the first line of its program, which makes a file. The runtime's own
time is that of the same calls without Shoal: from the request of a sandbox to the same line.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from pathlib import Path
from statistics import median
from time import monotonic, time
from typing import Any

import bench.cluster  # noqa: F401 - makes the helpers of the tests importable
from bench.cluster.figures import Figure
from bench.this_machine_pods import pods_until, processor_s
from build.container_machine import ContainerMachine
from build.containerd import TOOLS
from shoal.agent.kubelet.container_settings import ContainerMount, ContainerSettings, PodSettings
from shoal.agent.kubelet.cri.calls import RuntimeCalls
from shoal.agent.kubelet.cri.runtime import CriRuntime, Owner
from shoal.agent.kubelet.runtime import Launch, RunKey
from shoal.client.clock import WallClock
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.kind import JOBS, PODS
from shoal.client.port import Api

_PROGRAMS = ("containerd", "ctr", "runc", "busybox")
_START_S, _IDLE_PERCENT = 1.5, 3.0
_IDLE_OVER_S = 20.0
Obj = dict[str, Any]


def missing_for_containers() -> str:
    """What this machine has not; empty if containers can run."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"needs {', '.join(missing)}" if missing else "" if os.geteuid() == 0 else "only root starts containers"


async def start_s(api: Api, folder: Path, number: int) -> float:
    """From the creation of a Job to its running program."""
    file = folder / f"job-{number}"
    name = f"job-{number}"
    main = {
        "name": "main",
        "image": TOOLS,
        "command": ["touch", f"/shared/{file.name}"],
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    volume = {"name": "shared", "hostPath": {"path": str(folder)}}
    spec = {"restartPolicy": "Never", "containers": [main], "volumes": [volume]}
    begun = time()
    await api.create(JOBS, {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": {"spec": spec}}})
    await pods_until(
        api,
        lambda pods: any(
            one.startswith(f"{name}-") and pod.get("status", {}).get("phase") == "Succeeded"
            for one, pod in pods.items()
        ),
    )
    return file.stat().st_mtime - begun


async def runtime_s(runtime: CriRuntime, folder: Path, number: int) -> float:
    """The same without Shoal: sandbox, container and start."""
    key = RunKey(f"alone-{number}", "main", 0)
    pod = PodSettings(key.pod, key.pod, "default", "alone")
    settings = ContainerSettings(pod, mounts=(ContainerMount("/shared", folder),))
    launch = Launch(("touch", f"/shared/{key.pod}"), {}, None, image=TOOLS, container=settings)
    begun = time()
    await runtime.start(key, launch)
    await runtime.wait(key)
    took = (folder / key.pod).stat().st_mtime - begun
    await runtime.remove(key.pod)
    return took


async def sleeping(api: Api, count: int) -> float:
    """Create pods that sleep; the time until all run."""
    begun = monotonic()
    for number in range(count):
        main = {"name": "main", "image": TOOLS, "command": ["sleep", "100000"]}
        meta = {"name": f"sleeps-{number}", "namespace": "default"}
        await api.create(PODS, {"metadata": meta, "spec": {"terminationGracePeriodSeconds": 0, "containers": [main]}})

    def all_run(pods: dict[str, Obj]) -> bool:
        running = (name for name, pod in pods.items() if pod.get("status", {}).get("phase") == "Running")
        return sum(name.startswith("sleeps-") for name in running) == count

    await pods_until(api, all_run)
    return monotonic() - begun


async def measure_containers(folder: Path, *, jobs: int, pods: int) -> list[Figure]:
    machine = ContainerMachine(folder)
    shared = folder / "shared"
    shared.mkdir()
    api = KubeApi(locate(machine.server.kubeconfig), random.Random())
    runtime = CriRuntime(RuntimeCalls(machine.containerd.socket), Owner("bench", folder / "alone"), WallClock())
    try:
        times = sorted([await start_s(api, shared, number) for number in range(jobs)])
        alone = [await runtime_s(runtime, shared, number) for number in range(jobs)]
        ready = await sleeping(api, pods)
        before, begun = processor_s(machine.server.process.pid), monotonic()
        await asyncio.sleep(_IDLE_OVER_S)
        used = 100 * (processor_s(machine.server.process.pid) - before) / (monotonic() - begun)
        for number in range(pods):
            await api.delete(PODS, "default", f"sleeps-{number}")
        await pods_until(api, lambda seen: not any(name.startswith("sleeps-") for name in seen))
    finally:
        await runtime.close()
        await api.close()
        machine.stop()
    own, whole = median(alone), times[-1]
    beside = f"{whole:.2f} s with the runtime's {own:.2f} s; median of {jobs} Jobs {median(times):.2f} s"
    return [
        Figure("Job created to container running, slowest", whole - own, " s", most=_START_S, beside=beside),
        Figure(f"{pods} pods in containers created and running", ready, " s"),
        Figure(f"{pods} pods in containers idle, Shoal's processes", used, " % of a core", most=_IDLE_PERCENT,
               beside=f"over {_IDLE_OVER_S:.0f} s"),
    ]  # fmt: skip

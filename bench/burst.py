"""How soon a gang of 64 GPUs runs in a cluster without nodes: `python -m bench.burst`, with `src` on PYTHONPATH.

A real `shoal up --nodes none` runs at a speed of 60, with a NodePool of machines with 8 GPUs and the usual boot times
of the simulated cloud. Times are those of the cluster, in seconds: so a second of computing counts as a minute. Prints
the time from the request of the machines until all pods run beside the boot time, and the machines beside those needed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from shoal.client.ecosystem_kinds import LIGHT_POD_GROUPS, NODE_CLAIMS, NODE_POOLS
from shoal.client.http.api import KubeApi
from shoal.client.http.kubeconfig import read_kubeconfig
from shoal.client.http.settings import KubeSettings
from shoal.client.kind import JOBS, PODS
from shoal.embedded.cloud.settings import CloudSettings

_PODS, _GPUS, _PATIENCE_S = 8, 8, 120.0
_REACTION_S = 60.0
"""One second of computing at the speed of 60."""
Obj = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", type=float, default=60.0)
    speed = parser.parse_args(arguments).speed
    with tempfile.TemporaryDirectory() as folder:
        shoal = [sys.executable, "-m", "shoal"]
        state = ["--state", folder]
        environment = {**os.environ, "HOME": folder}
        up = [*shoal, "up", *state, "--nodes", "none", "--memory", "--port", "0", "--speed", f"{speed:g}", "--detach"]
        subprocess.run(up, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            asyncio.run(_measure(Path(folder) / "kubeconfig"))
        finally:
            subprocess.run([*shoal, "down", *state], check=True, env=environment, capture_output=True)  # noqa: S603
    return 0


async def _measure(kubeconfig: Path) -> None:
    api = KubeApi(read_kubeconfig([kubeconfig]), random.Random(1), KubeSettings())
    try:
        await api.create(NODE_POOLS, _pool())
        group = {"metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": _PODS}}
        await api.create(LIGHT_POD_GROUPS, group)
        await api.create(JOBS, _job())
        async with asyncio.timeout(_PATIENCE_S):
            while len(started := await _started(api)) < _PODS:  # noqa: ASYNC110 - another process changes it
                await asyncio.sleep(0.2)
        claims = [item.obj() for item in (await api.list(NODE_CLAIMS)).items]
    finally:
        await api.close()
    requested_s = min(_condition_s(claim, "Launched") for claim in claims)
    boot_s = CloudSettings().at_s("devices")
    took_s = max(started) - requested_s
    _say("from the request until all pods run", f"{took_s:.0f} s", f"<= boot time {boot_s:.0f} s + {_REACTION_S:.0f} s")
    _say("machines provisioned", f"{len(claims)}", f"{_PODS} needed")


async def _started(api: KubeApi) -> list[float]:
    pods = [item.obj() for item in (await api.list(PODS, "default")).items]
    containers = [one for pod in pods for one in (pod.get("status") or {}).get("containerStatuses") or ()]
    running = [one["state"]["running"] for one in containers if "running" in (one.get("state") or {})]
    return [datetime.fromisoformat(one["startedAt"]).timestamp() for one in running]


def _condition_s(claim: Obj, name: str) -> float:
    conditions = claim["status"]["conditions"]
    text = next(one["lastTransitionTime"] for one in conditions if one["type"] == name)
    return datetime.fromisoformat(text).timestamp()


def _pool() -> Obj:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"spec": {"requirements": requirements, "nodeClassRef": reference}}
    return {"metadata": {"name": "gpu"}, "spec": {"template": template}}


def _job() -> Obj:
    container = {"name": "main", "image": "trainer", "resources": {"limits": {"nvidia.com/gpu": str(_GPUS)}}}
    labels = {"scheduling.x-k8s.io/pod-group": "train"}
    meta = {"labels": labels, "annotations": {"shoal.dev/run-for": "100h"}}
    template = {"metadata": meta, "spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": _PODS, "completions": _PODS, "template": template}
    return {"metadata": {"name": "train", "namespace": "default"}, "spec": spec}


def _say(what: str, found: str, bar: str) -> None:
    sys.stdout.write(f"{what:40} {found:>10}   {bar}\n")


if __name__ == "__main__":
    raise SystemExit(main())

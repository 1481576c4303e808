"""Shoal beside kube-scheduler on the same nodes: how many pods of each scheduler fail for good.

Needs a cluster with kube-scheduler, GPU nodes that both may use, and `shoal run`:

    python bench/beside.py --kubeconfig FILE [--pods 60] [--gangs 12] [--gpus 1] [--wait 60]

It makes as many pods for `shoal` as for `default-scheduler`, at once; with --gangs the pods for `shoal` are gangs of
four. It prints how many of each run and failed, and deletes them. Exit code 1: more than one pod of Shoal failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections import Counter
from typing import Any

Obj = dict[str, Any]
OURS, THEIRS = "shoal", "default-scheduler"
_LABEL = "bench=beside"
_MOST_FAILED = 1


def kubectl(kubeconfig: str, *words: str, text: str = "") -> str:
    command = ["kubectl", "--kubeconfig", kubeconfig, *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603


def pod(name: str, scheduler: str, gpus: int, gang: str = "") -> Obj:
    labels = {"bench": "beside", **({"pod-group.scheduling.sigs.k8s.io": gang} if gang else {})}
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    containers = [{"name": "main", "image": "registry.example/app:1", "resources": resources}]
    spec = {"schedulerName": scheduler, "restartPolicy": "Never", "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def work(count: int, gangs: int, gpus: int) -> list[Obj]:
    """Pods of both schedulers by turns, so that both have work from the first moment."""
    made: list[Obj] = []
    for index in range(gangs or count):
        made.append(pod(f"theirs-{index}", THEIRS, gpus))
        if not gangs:
            made.append(pod(f"ours-{index}", OURS, gpus))
            continue
        group = {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": f"gang-{index}"},
        }
        made.append({**group, "spec": {"minMember": 4}})
        made += [pod(f"ours-{index}-{rank}", OURS, gpus, f"gang-{index}") for rank in range(4)]
    return made


def phases(kubeconfig: str) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {OURS: Counter(), THEIRS: Counter()}
    for each in json.loads(kubectl(kubeconfig, "get", "pods", "-l", _LABEL, "-o", "json"))["items"]:
        found[each["spec"]["schedulerName"]][each["status"]["phase"]] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--pods", type=int, default=60)
    parser.add_argument("--gangs", type=int, default=0)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--wait", type=float, default=60.0)
    chosen = parser.parse_args()
    objects = {"apiVersion": "v1", "kind": "List", "items": work(chosen.pods, chosen.gangs, chosen.gpus)}
    try:
        kubectl(chosen.kubeconfig, "create", "-f", "-", text=json.dumps(objects))
        subprocess.run(["sleep", str(chosen.wait)], check=True)  # noqa: S603, S607
        found = phases(chosen.kubeconfig)
    finally:
        kubectl(chosen.kubeconfig, "delete", "pods", "-l", _LABEL, "--wait=false")
    for scheduler, counts in found.items():
        print(f"{scheduler:<20}{', '.join(f'{count} {phase}' for phase, count in sorted(counts.items()))}")
    return int(found[OURS]["Failed"] > _MOST_FAILED)


if __name__ == "__main__":
    raise SystemExit(main())

"""Nodes that say what a test has them say: what the kubelets' endpoint asks, without kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from shoal.embedded.apiserver.streams.terminal import CommandOutput
from shoal.embedded.kubelets.node_view import LogLine, NodeView, Usage

Obj = dict[str, Any]
START_S = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
_QUIET_TURNS = 50
"""Of the loop. Who follows a log looks each turn."""


class FakeNode:
    """Its pods run the containers they name; each writes what `write` is told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pods: dict[tuple[str, str], Obj] = {}
        self.logs: dict[tuple[str, str, bool], list[LogLine]] = {}
        self.running: set[tuple[str, str]] = set()
        self.commands: list[tuple[str, ...]] = []
        self.looks = 0
        """How often somebody looked into a log."""
        self.reachable = True
        self.exported = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",Hostname="{name}"}} 85\n'
        self.answer = CommandOutput("out\n", "err\n", 0)

    def run_pod(self, name: str, *containers: str, namespace: str = "default", uid: str = "") -> Obj:
        names = containers or ("main",)
        pod: Obj = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "labels": {"app": name}},
            "spec": {"nodeName": self.name, "containers": [{"name": one, "image": "i"} for one in names]},
            "status": {
                "phase": "Running",
                "containerStatuses": [container_status(one, {"running": {}}) for one in names],
            },
        }
        self.pods[namespace, name] = pod
        self.running |= {(pod["metadata"]["uid"], one) for one in names}
        return pod

    def write(self, name: str, *texts: str, container: str = "main", previous: bool = False) -> None:
        """Lines one second apart."""
        lines = self.logs.setdefault((f"uid-{name}", container, previous), [])
        lines += [LogLine(START_S + len(lines) + index, text) for index, text in enumerate(texts)]

    def restart(self, name: str, container: str = "main", namespace: str = "default") -> None:
        """What it wrote is the log of the run before; the next run has written nothing."""
        uid = f"uid-{name}"
        self.logs[uid, container, True] = self.logs.pop((uid, container, False), [])
        for one in self.pods[namespace, name]["status"]["containerStatuses"]:
            if one["name"] == container:
                one["restartCount"] += 1
                one["lastState"] = {"terminated": {"exitCode": 1}}

    async def left_alone(self) -> None:
        """Returns once nobody looks into its logs any more."""
        before = -1
        while before != self.looks:
            before = self.looks
            for _ in range(_QUIET_TURNS):
                await asyncio.sleep(0)

    def pod(self, namespace: str, name: str) -> Obj | None:
        return self.pods.get((namespace, name))

    def log(self, pod_uid: str, container: str, *, previous: bool = False) -> Sequence[LogLine]:
        self.looks += 1
        return tuple(self.logs.get((pod_uid, container, previous), ()))

    def is_running(self, pod_uid: str, container: str) -> bool:
        return (pod_uid, container) in self.running

    def run(self, pod_uid: str, container: str, command: Sequence[str]) -> CommandOutput:
        self.commands.append((pod_uid, container, *command))
        return self.answer

    def usage(self) -> Usage:
        return Usage(1500, 3 << 30)

    def size(self) -> Usage:
        return Usage(4000, 16 << 30)

    def pod_usage(self) -> Sequence[tuple[Obj, dict[str, Usage]]]:
        return [
            (pod, {one["name"]: Usage(250, 64 << 20) for one in pod["spec"]["containers"]})
            for pod in self.pods.values()
        ]

    def dcgm(self) -> str:
        return self.exported

    def is_reachable(self) -> bool:
        return self.reachable


class FakeNodes:
    def __init__(self, *names: str) -> None:
        self.all = {name: FakeNode(name) for name in names}

    def __getitem__(self, name: str) -> FakeNode:
        return self.all[name]

    def node(self, name: str) -> NodeView | None:
        return self.all.get(name)

    def names(self) -> Sequence[str]:
        return tuple(self.all)


def container_status(name: str, state: Obj) -> Obj:
    return {"name": name, "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state}

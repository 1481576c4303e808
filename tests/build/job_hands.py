"""Jobs on a small cluster, and a hand that plays kubelet for their pods."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from build.small_clusters import SmallCluster
from shoal.client.item import Obj
from shoal.client.kind import JOBS, PODS
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.jobs.pods import JobPod


def job(name: str = "train", *, template: Obj | None = None, annotations: Obj | None = None, **spec: Any) -> Obj:
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    pod: Obj = {"metadata": {"annotations": annotations or {}}, "spec": pod_spec | (template or {})}
    return {"metadata": {"name": name}, "spec": {"template": pod} | spec}


def conditions(one: Obj) -> dict[str, tuple[str, str, str]]:
    """Of a job: status, reason and message by type."""
    found = one["status"].get("conditions") or ()
    return {each["type"]: (each["status"], each.get("reason", ""), each.get("message", "")) for each in found}


def job_pod_like(**fields: Any) -> JobPod:
    """A pod that does nothing special but for these fields."""
    plain: dict[str, Any] = {
        "namespace": "default", "name": "pod", "uid": "pod", "owner_uid": "job", "job_name": "train", "labels": {},
        "phase": "Failed", "node": "", "index": None, "index_failures": 0, "index_ignored": 0, "is_tracked": True,
        "is_deleting": False, "ready_since": None, "created_s": 0.0, "ended_s": 0.0, "restarts": 0, "most_restarts": 0,
        "exits": (), "conditions": (),
    }  # fmt: skip
    return JobPod(**plain | fields)


class Hand:
    """Finishes pods as a kubelet would, when told to."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster

    async def job(self, name: str = "train") -> Obj:
        return await self.cluster.get(JOBS, name)

    async def status(self, name: str = "train") -> Obj:
        found: Obj = (await self.job(name)).get("status") or {}
        return found

    async def live(self) -> list[Obj]:
        """Pods that have not ended and are not about to."""
        return [
            pod
            for pod in await self.cluster.pods()
            if pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]
        ]

    async def indexes(self) -> list[int]:
        key = "batch.kubernetes.io/job-completion-index"
        return sorted(int(pod["metadata"]["annotations"][key]) for pod in await self.live())

    async def at(self, index: int) -> Obj:
        key = "batch.kubernetes.io/job-completion-index"
        return next(pod for pod in await self.live() if pod["metadata"]["annotations"][key] == str(index))

    async def bind(self, pod: Obj) -> None:
        """From then on it is not gone as soon as it is deleted."""
        target = {"target": {"kind": "Node", "name": "node"}}
        await self.cluster.api.post(PODS, "default", pod["metadata"]["name"], "binding", target)

    async def run(self, pod: Obj, restarts: int = 0) -> None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": self.cluster.clock.text()}
        main = {"name": "main", "restartCount": restarts, "ready": True, "image": "busybox", "imageID": ""}
        main["state"] = {"running": {"startedAt": self.cluster.clock.text()}}
        await self._write(pod, {"phase": "Running", "conditions": [ready], "containerStatuses": [main]})

    async def end(self, pod: Obj, code: int = 0, *, conditions: list[Obj] | None = None) -> None:
        now = self.cluster.clock.text()
        main = {"name": "main", "restartCount": 0, "ready": False, "image": "busybox", "imageID": ""}
        main["state"] = {"terminated": {"exitCode": code, "startedAt": now, "finishedAt": now}}
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [main]}
        await self._write(pod, status | {"conditions": [ready, *(conditions or ())]})

    async def bury(self) -> None:
        """Takes away pods that are being deleted, as the kubelet does once they have stopped."""
        for pod in await self.cluster.pods():
            if "deletionTimestamp" in pod["metadata"]:
                await self.remove(pod)

    async def remove(self, pod: Obj) -> None:
        try:
            await self.cluster.delete(PODS, pod["metadata"]["name"], Deletion(grace_s=0))
        except NotFoundError:
            return

    async def _write(self, pod: Obj, status: Obj) -> None:
        await self.cluster.patch(PODS, pod["metadata"]["name"], {"status": status}, subresource="status")

    async def until_live(self, count: int, within_s: float = 60.0) -> None:
        async def are_there() -> bool:
            return len(await self.live()) == count

        await self.cluster.until(are_there, within_s)

    async def until_status(self, holds: Callable[[Obj], Any], name: str = "train", within_s: float = 60.0) -> None:
        async def is_so() -> bool:
            return bool(holds(await self.status(name)))

        await self.cluster.until(is_so, within_s)

    async def until_condition(self, kind: str, name: str = "train", within_s: float = 60.0) -> tuple[str, str, str]:
        async def is_there() -> bool:
            return conditions(await self.job(name)).get(kind, ("",))[0] == "True"

        await self.cluster.until(is_there, within_s)
        return conditions(await self.job(name))[kind]

    async def fate(self, draw: random.Random, failing: float, seconds: float) -> None:
        """Ends pods by chance for that long."""
        ends = self.cluster.clock.seconds() + seconds
        while self.cluster.clock.seconds() < ends:
            for pod in await self.live():
                if draw.random() < 0.4:
                    try:
                        await self.end(pod, int(draw.random() < failing))
                    except NotFoundError:
                        continue
            await self.bury()
            await self.cluster.pass_time(draw.uniform(0.05, 2.0))

"""What scheduler and kubelet do, as far as controllers that keep pods can see it: pods run, become ready, end.

    life = PodLife(ready_after_s=1)
    async with small_cluster(tmp_path, [replica_set_controller, life.controller]) as cluster: ...

`is_well` says which pods become ready. Unlike a kubelet it also places pods: round over `nodes`, or where a pod's
affinity names its node.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from shoal.client.context import Context
from shoal.client.item import Key, Obj
from shoal.client.kind import PODS
from shoal.client.loop import Loop
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import NotFoundError

BINDING = "binding"


def always(_pod: Obj) -> bool:
    return True


class PodLife:
    def __init__(
        self,
        ready_after_s: float = 1.0,
        ends_after_s: float = 1.0,
        is_well: Callable[[Obj], bool] = always,
        nodes: tuple[str, ...] = ("node-a", "node-b"),
    ) -> None:
        self.ready_after_s = ready_after_s
        self.ends_after_s = ends_after_s
        self.is_well = is_well
        self.nodes = nodes
        self.placed = 0

    def controller(self, context: Context) -> Loop:
        since: dict[tuple[Key, str], float] = {}

        def waited(key: Key, what: str, seconds: float) -> float:
            """How much of that time is left."""
            now = context.clock.seconds()
            return since.setdefault((key, what), now) + seconds - now

        async def reconcile(key: Key) -> float | None:
            item = context.informers.of(PODS).get(*key)
            if item is None:
                return None
            pod = item.obj()
            if "deletionTimestamp" in pod["metadata"]:
                left_s = waited(key, f"ends {item.uid}", self.ends_after_s)
                if left_s > 0:
                    return left_s
                with suppress(NotFoundError):
                    await context.api.delete(PODS, *key, Deletion(grace_s=0, uid=item.uid))
                return None
            if not pod["spec"].get("nodeName"):
                await self._place(context, pod)
                return None
            if pod["status"].get("phase") != "Pending" or not self.is_well(pod):
                return 1.0 if pod["status"].get("phase") == "Pending" else None
            left_s = waited(key, f"ready {item.uid}", self.ready_after_s)
            if left_s > 0:
                return left_s
            status = running(context.clock.text())
            await context.api.patch(PODS, *key, Patch("merge", {"status": status}), "status")
            return None

        loop = Loop(context, reconcile)
        loop.follow(PODS)
        return loop

    async def _place(self, context: Context, pod: Obj) -> None:
        node = wanted_node(pod) or self.nodes[self.placed % len(self.nodes)]
        self.placed += 1
        meta = pod["metadata"]
        target = {"kind": "Node", "apiVersion": "v1", "name": node}
        await context.api.post(PODS, meta["namespace"], meta["name"], BINDING, {"target": target})


def running(now: str, *, ready: bool = True) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now}
    return {"phase": "Running", "conditions": [condition], "startTime": now}


def wanted_node(pod: Obj) -> str:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for one in term.get("matchFields") or ():
            return str(one["values"][0])
    return ""


def template(app: str = "web", image: str = "web:1", **spec: Any) -> Obj:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def workload(name: str = "web", replicas: int | None = 3, **spec: Any) -> Obj:
    """The fields that workloads share."""
    counted = {} if replicas is None else {"replicas": replicas}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(name), **counted, **spec},
    }

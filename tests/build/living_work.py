"""Work of every sort that arrives at a cluster, changes and leaves again; and what must have become of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from build.small_clusters import SmallCluster
from shoal.client.item import Obj
from shoal.client.kind import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ENDPOINT_SLICES,
    JOBS,
    NAMESPACES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Kind,
)
from shoal.client.port import Deletion
from shoal.client.refusals import BusyError, NotFoundError, RefusedError

_POLICIES = ("Background", "Foreground", "Orphan")
_SCALED = (DEPLOYMENTS, STATEFUL_SETS)


class Work:
    """`wanted` holds what is there to stay; what is deleted is forgotten here and must be gone in the end."""

    def __init__(self, cluster: SmallCluster, draw: random.Random) -> None:
        self.wanted: dict[tuple[Kind, str], Obj] = {}
        self._cluster = cluster
        self._draw = draw
        self._spaces: list[str] = []
        self._count = 0

    async def arrive(self) -> None:
        self._count += 1
        name = f"{self._draw.choice('abcd')}{self._count}"
        kind, obj = self._draw.choice([_job, _job, _indexed, _deployment, _set, _daemons, _cron])(name, self._draw)
        await self._cluster.create(kind, obj)
        self.wanted[kind, name] = obj
        if kind in _SCALED and self._draw.random() < 0.5:
            budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
            await self._cluster.create(DISRUPTION_BUDGETS, {"metadata": {"name": name}, "spec": budget})
        if kind in _SCALED:
            ports = [{"port": 80}]
            await self._cluster.create(
                SERVICES, {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports}}
            )

    async def change(self) -> None:
        """Somebody scales, rolls out, suspends, deletes or evicts something."""
        does = [self._scale, self._roll, self._delete, self._evict, self._end_a_pod, self._open, self._close]
        await self._draw.choice(does)()

    async def settle(self) -> None:
        """Nothing comes any more by itself."""
        while self._spaces:
            await self._close()
        for kind, name in self._of(CRON_JOBS):
            await self._cluster.patch(kind, name, {"spec": {"suspend": True}})

    def _of(self, *kinds: Kind) -> list[tuple[Kind, str]]:
        return [key for key in self.wanted if key[0] in kinds]

    async def _scale(self) -> None:
        if found := self._of(*_SCALED):
            kind, name = self._draw.choice(found)
            replicas = self._draw.randrange(5)
            self.wanted[kind, name]["spec"]["replicas"] = replicas
            await self._cluster.patch(kind, name, {"spec": {"replicas": replicas}})

    async def _roll(self) -> None:
        if found := self._of(*_SCALED, DAEMON_SETS):
            kind, name = self._draw.choice(found)
            said = {"roll": str(self._draw.randrange(3))}
            await self._cluster.patch(kind, name, {"spec": {"template": {"metadata": {"annotations": said}}}})

    async def _delete(self) -> None:
        if self.wanted:
            kind, name = self._draw.choice(list(self.wanted))
            how = Deletion(policy=self._draw.choice(_POLICIES))  # type: ignore[arg-type]
            if kind == JOBS and how.policy == "Orphan":
                how = Deletion(policy="Background")
            del self.wanted[kind, name]
            await self._cluster.delete(kind, name, how)

    async def _evict(self) -> None:
        if pod := await self._some_pod():
            try:
                await self._cluster.api.post(PODS, "default", pod["metadata"]["name"], "eviction", {"metadata": {}})
            except (BusyError, RefusedError):
                return

    async def _end_a_pod(self) -> None:
        if pod := await self._some_pod():
            how = Deletion(grace_s=0) if self._draw.random() < 0.2 else Deletion()
            try:
                await self._cluster.delete(PODS, pod["metadata"]["name"], how)
            except NotFoundError:
                return

    async def _open(self) -> None:
        """A namespace with a life of its own."""
        self._count += 1
        name = f"space-{self._count}"
        await self._cluster.create(NAMESPACES, {"metadata": {"name": name}})
        kind, obj = self._draw.choice([_job, _deployment, _set])("guest", self._draw)
        await self._cluster.create(kind, obj, namespace=name)
        await self._cluster.create(CONFIG_MAPS, {"metadata": {"name": "papers"}}, namespace=name)
        self._spaces.append(name)

    async def _close(self) -> None:
        if self._spaces:
            await self._cluster.delete(NAMESPACES, self._spaces.pop(), Deletion())

    async def _some_pod(self) -> Obj | None:
        pods = await self._cluster.pods("default")
        return self._draw.choice(pods) if pods else None

    # -- the end ------------------------------------------------------------------------------------------------------

    async def lacks(self, nodes: int) -> list[str]:
        """What is not yet as it was asked for."""
        objects = {
            (kind, obj["metadata"]["name"]): obj for kind in _KINDS for obj in await self._cluster.all(kind, "default")
        }
        lacking = {key: _lack(objects.get(key), key[0], nodes) for key in self.wanted}
        # Jobs of a cron job that was deleted without them go on too.
        lacking |= {key: _lack(obj, JOBS, nodes) for key, obj in objects.items() if key[0] == JOBS}
        found = [f"{kind.name} {name}: {words}" for (kind, name), words in lacking.items() if words]
        return found + await self._astray()

    async def _astray(self) -> list[str]:
        """Services that do not lead to the pods that serve."""
        pods, slices = await self._cluster.pods("default"), await self._cluster.all(ENDPOINT_SLICES, "default")
        found = []
        for _, name in self._of(*_SCALED):
            serving = {pod["status"]["podIP"] for pod in pods if _serves(pod, name)}
            ends = [
                end
                for one in slices
                if one["metadata"]["labels"].get(_SERVICE) == name
                for end in one["endpoints"] or ()
            ]
            told = {address for end in ends if end["conditions"]["ready"] for address in end["addresses"]}
            if told != serving:
                found.append(f"Service {name}: {sorted(told)} and not {sorted(serving)}")
        return found


_SERVICE, _TRACKING = "kubernetes.io/service-name", "batch.kubernetes.io/job-tracking"
_KINDS = (JOBS, CRON_JOBS, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)


def _lack(obj: Obj | None, kind: Kind, nodes: int) -> str:
    if obj is None:
        return "is lost"
    spec, status = obj["spec"], obj.get("status") or {}
    if kind == JOBS:
        wrong = not _ended(status) or status.get("succeeded") != spec["completions"]
        return f"{status}" if wrong else ""
    if kind in _SCALED:
        counts = [status.get(name) or 0 for name in ("replicas", "readyReplicas", "updatedReplicas")]
        return f"{counts} of {spec['replicas']}" if set(counts) != {spec["replicas"]} else ""
    if kind == DAEMON_SETS:
        counts = [status.get(name) or 0 for name in ("desiredNumberScheduled", "numberReady", "updatedNumberScheduled")]
        return f"{counts} of {nodes}" if set(counts) != {nodes} else ""
    return f"{len(status['active'])} jobs go on" if status.get("active") else ""


def _serves(pod: Obj, app: str) -> bool:
    ready = {one["type"]: one["status"] for one in pod["status"].get("conditions") or ()}.get("Ready")
    return pod["metadata"]["labels"].get("app") == app and ready == "True"


def _ended(status: Obj) -> bool:
    return any(one["type"] == "Complete" and one["status"] == "True" for one in status.get("conditions") or ())


def template(name: str, *, gpus: int = 0, annotations: Obj | None = None, **spec: Any) -> Obj:
    container: Obj = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}
    if gpus:
        container["resources"]["limits"] = {"nvidia.com/gpu": str(gpus)}
    meta = {"labels": {"app": name}, "annotations": annotations or {}}
    return {"metadata": meta, "spec": {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}}


def _job(name: str, draw: random.Random) -> tuple[Kind, Obj]:
    said = {"shoal.dev/run-for": draw.choice(["1s", "7s", "40s", "3m"])}
    pod = template(name, gpus=draw.choice([0, 1, 1, 2]), annotations=said, restartPolicy="Never")
    spec = {"completions": draw.randint(1, 6), "parallelism": draw.randint(1, 4), "backoffLimit": 1000}
    return JOBS, {"metadata": {"name": name}, "spec": {**spec, "template": pod}}


def _indexed(name: str, draw: random.Random) -> tuple[Kind, Obj]:
    kind, obj = _job(name, draw)
    obj["spec"]["completionMode"] = "Indexed"
    return kind, obj


def _deployment(name: str, draw: random.Random) -> tuple[Kind, Obj]:
    spec = {"replicas": draw.randint(0, 4), "selector": {"matchLabels": {"app": name}}}
    return DEPLOYMENTS, {"metadata": {"name": name}, "spec": {**spec, "template": template(name)}}


def _set(name: str, draw: random.Random) -> tuple[Kind, Obj]:
    _, obj = _deployment(name, draw)
    how = draw.choice(["Parallel", "OrderedReady"])
    obj["spec"] |= {"serviceName": name, "podManagementPolicy": how}
    return STATEFUL_SETS, obj


def _daemons(name: str, draw: random.Random) -> tuple[Kind, Obj]:
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template(name)}
    return DAEMON_SETS, {"metadata": {"name": name}, "spec": spec}


def _cron(name: str, draw: random.Random) -> tuple[Kind, Obj]:
    _, job = _job(name, draw)
    how = draw.choice(["Allow", "Forbid", "Replace"])
    spec = {"schedule": "* * * * *", "concurrencyPolicy": how, "jobTemplate": {"spec": job["spec"]}}
    return CRON_JOBS, {"metadata": {"name": name}, "spec": spec}


def remains(objects: dict[Kind, list[Obj]]) -> Iterator[str]:
    """What should not be there any more: what waits for its end, and what nobody owns any more."""
    uids = {obj["metadata"]["uid"] for found in objects.values() for obj in found}
    for kind, found in objects.items():
        for obj in found:
            meta = obj["metadata"]
            if "deletionTimestamp" in meta:
                yield f"{kind.name} {meta['name']} is ending: {meta.get('finalizers')}"
            if _TRACKING in (meta.get("finalizers") or ()):
                yield f"{kind.name} {meta['name']} was never counted"
            owners = [one["uid"] for one in meta.get("ownerReferences") or ()]
            if owners and not uids & set(owners):
                yield f"{kind.name} {meta['name']} has lost its owner"

"""What may never happen in Shoal's storms, and what may not stay so once everybody has had the time to mend it.

Devices are counted by what Shoal wrote on the pods (what kubelets say of them is `cluster_laws.py`'s); quota by what
Workloads hold, against all that was ever allowed: nobody takes quota back from those who have it.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator

from build.small_clusters import SmallCluster
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, WORKLOADS
from shoal.client.informer import Informer
from shoal.client.item import Item, Obj
from shoal.client.kind import JOBS, PODS, RESOURCE_CLAIMS, Kind

_OVER = ("Succeeded", "Failed")
_GROUPS = ("kueue.x-k8s.io/pod-group-name", "scheduling.x-k8s.io/pod-group")
_NOTE = "kueue.x-k8s.io/workload"


class StormLaws:
    """`broken` is what was seen; told of a change the moment the server's watch has it."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.broken: list[str] = []
        self.admissions = 0
        self._allowed: dict[str, Counter[str]] = {}
        """Cluster queue -> the most that was ever its own."""
        self._held: dict[str, Counter[str]] = {}
        self._devices: dict[str, tuple[str, str, frozenset[str]]] = {}
        """Uid -> name, node and devices of pods that are not over, and of claims."""
        self._is_to_look = False
        self._tasks: list[asyncio.Task[None]] = []
        for kind in (CLUSTER_QUEUES, WORKLOADS, PODS, RESOURCE_CLAIMS):
            informer = Informer(cluster.api, kind, cluster.clock, random.Random(0))
            informer.on_change(lambda before, after, kind=kind: self._see(kind, before, after))  # type: ignore[misc]
            self._tasks.append(asyncio.ensure_future(informer.run()))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _see(self, kind: Kind, before: Item | None, after: Item | None) -> None:
        known = after or before
        assert known is not None
        try:
            if kind == CLUSTER_QUEUES and after is not None:
                self._see_queue(after.obj())
            elif kind == WORKLOADS:
                self._see_workload(known, after)
            elif kind == PODS:
                self._see_pod(known, after)
            elif kind == RESOURCE_CLAIMS:
                self._see_claim(known, after)
        except Exception as error:  # noqa: BLE001 - a fault of this observer must be seen, and caches swallow them
            self.broken.append(f"the observer fell over {kind.plural} {known.name}: {error!r}")

    def _see_queue(self, queue: Obj) -> None:
        allowed = self._allowed.setdefault(queue["metadata"]["name"], Counter())
        for group in queue["spec"]["resourceGroups"]:
            for each in group["flavors"][0]["resources"]:
                allowed[each["name"]] = max(allowed[each["name"]], int(each["nominalQuota"]))

    def _see_workload(self, known: Item, after: Item | None) -> None:
        held = Counter(dict(_held(after.obj()))) if after is not None else Counter()
        if held and not self._held.get(known.uid):
            self.admissions += 1
        self._held[known.uid] = held
        self._later()

    def _see_pod(self, known: Item, after: Item | None) -> None:
        pod = after.obj() if after is not None else {}
        if after is None or pod["status"].get("phase") in _OVER:
            self._devices.pop(known.uid, None)
            return
        said = (pod["metadata"].get("annotations") or {}).get("shoal.dev/devices")
        if said and pod["spec"].get("nodeName"):
            ids = [one for each in json.loads(said).values() for found in each.values() for one in found]
            self._devices[known.uid] = known.name, pod["spec"]["nodeName"], frozenset(ids)
            self._later()

    def _see_claim(self, known: Item, after: Item | None) -> None:
        self._devices.pop(known.uid, None)
        allocation = ((after.obj() if after is not None else {}).get("status") or {}).get("allocation")
        if allocation:
            given = [(one["driver"], one["pool"], one["device"]) for one in allocation["devices"]["results"]]
            # Its devices are some driver's; that of a node is one of them only by name.
            self._devices[known.uid] = known.name, "", frozenset("/".join(one) for one in given)
            self._later()

    def _later(self) -> None:
        if not self._is_to_look:
            self._is_to_look = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Once a batch is read: a list after a gap says what happened in no order."""
        self._is_to_look = False
        holders: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, node, devices in self._devices.values():
            for device in devices:
                holders[node, device].append(name)
        self.broken += [f"{device} is given to {names}" for device, names in holders.items() if len(names) > 1]
        held: Counter[str] = sum(self._held.values(), Counter())
        allowed: Counter[str] = sum(self._allowed.values(), Counter())
        over = {name: (amount, allowed[name]) for name, amount in held.items() if amount > allowed[name]}
        if over:
            self.broken.append(f"more than the cohort's quota is given away: {over}")


def _held(workload: Obj) -> Iterator[tuple[str, int]]:
    status = workload.get("status") or {}
    admission = status.get("admission")
    if not admission or is_so(workload, "Finished"):
        return
    total: Counter[str] = Counter()
    freed = {one["name"]: one["count"] for one in status.get("reclaimablePods") or ()}
    for each in admission["podSetAssignments"]:
        count = each["count"]
        for name, amount in (each.get("resourceUsage") or {}).items():
            total[name] += int(amount) * (count - min(freed.get(each["name"], 0), count)) // max(count, 1)
    yield from total.items()


def is_so(workload: Obj, condition: str) -> bool:
    each = (workload.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in each)


async def unrest(cluster: SmallCluster) -> list[str]:
    """What may be so for a moment only. Pods of an admitted workload wait for no room once they are all there; where
    some are missing that only a person can bring, the others have to wait for them."""
    pods, jobs = await cluster.pods(), {one["metadata"]["uid"]: one for one in await cluster.all(JOBS)}
    alive = [one for one in pods if one["status"].get("phase") not in _OVER]
    found: list[str] = []
    for workload in await cluster.all(WORKLOADS):
        if not is_so(workload, "Finished"):
            found += _unrest_of(workload, jobs, alive)
    for name, members in _gangs(alive, jobs).items():
        bound = sum(bool(one["spec"].get("nodeName")) for one in members)
        if bound not in (0, len(members)):
            found.append(f"of gang {name} {bound} of {len(members)} pods have a node")
    return found


def _unrest_of(workload: Obj, jobs: dict[str, Obj], alive: list[Obj]) -> Iterator[str]:
    meta = workload["metadata"]
    is_admitted, has_quota = is_so(workload, "Admitted"), is_so(workload, "QuotaReserved")
    if is_so(workload, "Evicted") and has_quota:
        yield f"{meta['name']} is evicted and holds quota"
    if has_quota and not is_admitted:
        yield f"{meta['name']} holds quota and is not admitted"
    if has_quota != bool((workload.get("status") or {}).get("admission")):
        yield f"{meta['name']}: quota {has_quota}, but its admission says otherwise"
    owners = {one["uid"] for one in meta.get("ownerReferences") or ()}
    job = next((jobs[uid] for uid in owners if uid in jobs), None)
    if job is not None:
        is_suspended = bool(job["spec"].get("suspend"))
        if is_admitted == is_suspended:
            yield f"{meta['name']}: admitted {is_admitted}, suspended {is_suspended}"
    mine = [one for one in alive if _is_of(one, owners)]
    gated = [one for one in mine if one["spec"].get("schedulingGates")]
    if is_admitted and gated:
        yield f"{meta['name']} is admitted and its pods are gated"
    waiting = [one["metadata"]["name"] for one in mine if not one["spec"].get("nodeName")]
    if is_admitted and waiting and len(mine) >= _lets_loose(workload):
        yield f"{meta['name']} is admitted and {waiting} wait for a node"
    if not is_admitted and any(one["spec"].get("nodeName") for one in mine):
        yield f"{meta['name']} is not admitted and runs"


def _lets_loose(workload: Obj) -> int:
    """How many pods it is admitted with, but for those that have done their part."""
    status = workload["status"]
    freed = sum(one["count"] for one in status.get("reclaimablePods") or ())
    given = (status.get("admission") or {}).get("podSetAssignments") or ()
    return int(sum(one["count"] for one in given) - freed)


def _is_of(pod: Obj, owners: set[str]) -> bool:
    uids = {pod["metadata"]["uid"], *(one["uid"] for one in pod["metadata"].get("ownerReferences") or ())}
    return bool(uids & owners)


def _gangs(alive: list[Obj], jobs: dict[str, Obj]) -> dict[str, list[Obj]]:
    found: dict[str, list[Obj]] = defaultdict(list)
    for pod in alive:
        labels = pod["metadata"].get("labels") or {}
        for label in _GROUPS:
            if label in labels:
                found[labels[label]].append(pod)
        for owner in pod["metadata"].get("ownerReferences") or ():
            job = jobs.get(owner["uid"])
            if job is not None and "shoal.dev/gang" in (job["metadata"].get("annotations") or {}):
                found[owner["name"]].append(pod)
    return found

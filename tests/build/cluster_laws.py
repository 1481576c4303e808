"""What may never happen in a cluster, seen by somebody who reads every version of every object from the server."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Iterator

from build.small_clusters import SmallCluster
from shoal.client.informer import Informer
from shoal.client.item import Item, Obj
from shoal.client.kind import EVENTS, JOBS, NODES, PODS, Kind
from shoal.units.quantity import Quantity

_TERMINAL = ("Succeeded", "Failed")


class Laws:
    """`broken` is what was seen; told of a change the moment the server's watch has it."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.broken: list[str] = []
        self.writes: Counter[str] = Counter()
        self._cluster = cluster
        self._phases: dict[str, str] = {}
        self._starts: dict[tuple[str, str], str] = {}
        self._devices: dict[str, frozenset[str]] = {}
        """Of each pod that runs, as its status says."""
        self._names: dict[str, str] = {}
        self._node_of: dict[str, str] = {}
        self._to_weigh: set[str] = set()
        self._is_to_look = False
        self._asks: dict[str, dict[str, int]] = {}
        self._room: dict[str, dict[str, int]] = defaultdict(dict)
        self._counts: dict[str, tuple[int, int]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def watch(self, kinds: dict[Kind, None]) -> None:
        for kind in kinds:
            informer = Informer(self._cluster.api, kind, self._cluster.clock, random.Random(0))
            informer.on_change(lambda before, after, kind=kind: self._see(kind, before, after))  # type: ignore[misc]
            self._tasks.append(asyncio.ensure_future(informer.run()))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- every change -------------------------------------------------------------------------------------------------

    def _see(self, kind: Kind, before: Item | None, after: Item | None) -> None:
        known = after or before
        assert known is not None
        # Events go by themselves when they are old.
        if after is not None or kind != EVENTS:
            self.writes[f"{kind.plural} {known.namespace}/{known.name}"] += 1
        try:
            if kind == PODS:
                self._see_pod(after) if after is not None else self._forget(known.uid)
            elif kind == NODES and after is not None:
                self._room[after.name] = _amounts((after.obj().get("status") or {}).get("capacity") or {})
            elif kind == JOBS and after is not None:
                self._see_job(after)
        except Exception as error:  # noqa: BLE001 - a fault of this observer must be seen, and caches swallow them
            self.broken.append(f"the observer fell over {kind.plural} {known.name}: {error!r}")

    def _forget(self, uid: str) -> None:
        self._devices.pop(uid, None)
        self._node_of.pop(uid, None)
        self._asks.pop(uid, None)

    def _see_pod(self, item: Item) -> None:
        pod = item.obj()
        spec, status, uid = pod["spec"], pod["status"], item.uid
        phase, before = status.get("phase", "Pending"), self._phases.get(uid)
        if before in _TERMINAL and phase != before:
            self.broken.append(f"{item.name} came back: {before} > {phase}")
        self._phases[uid] = phase
        for one in status.get("containerStatuses") or ():
            if running := one["state"].get("running"):
                first = self._starts.setdefault((uid, one["name"]), running["startedAt"])
                if spec["restartPolicy"] == "Never" and (first != running["startedAt"] or one["restartCount"]):
                    self.broken.append(f"{item.name} ran twice: {first}, {running['startedAt']}")
        if phase in _TERMINAL:
            self._forget(uid)
            return
        self._devices[uid] = frozenset(_devices(status)) if phase == "Running" else frozenset()
        self._names[uid] = item.name
        node = spec.get("nodeName")
        if node and self._node_of.get(uid, node) != node:
            self.broken.append(f"{item.name} moved")
        if node and uid not in self._node_of:
            self._node_of[uid], self._asks[uid] = node, _asked(spec)
            self._to_weigh.add(node)
        if not self._is_to_look:
            self._is_to_look = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """What concerns several pods, once a batch is read: a list after a gap says what happened in no order."""
        self._is_to_look = False
        holders: dict[str, list[str]] = defaultdict(list)
        for uid, devices in self._devices.items():
            for device in devices:
                holders[device].append(self._names[uid])
        self.broken += [f"{device} is held by {names}" for device, names in holders.items() if len(names) > 1]
        for node in self._to_weigh:
            there = [self._asks[uid] for uid, other in self._node_of.items() if other == node]
            for name, room in self._room[node].items():
                wanted = sum(one.get(name, 0) for one in there)
                if not name.startswith("nvidia.com/mig") and wanted > room:
                    self.broken.append(f"{node} is given {wanted} n of {name}, it has {room} n")
        self._to_weigh.clear()

    def _see_job(self, item: Item) -> None:
        """Counts of an end never go back, and an index that succeeded stays so."""
        job = item.obj()
        status = job.get("status") or {}
        counts = (status.get("succeeded") or 0, status.get("failed") or 0)
        before = self._counts.get(item.uid, (0, 0))
        if counts[0] < before[0] or counts[1] < before[1]:
            self.broken.append(f"job {item.name} forgot: {before} > {counts}")
        wanted = job["spec"].get("completions")
        if job["spec"].get("completionMode") == "Indexed" and counts[0] > wanted:
            self.broken.append(f"job {item.name} counts {counts[0]} of {wanted}")
        self._counts[item.uid] = counts


def _devices(status: Obj) -> Iterator[str]:
    for one in status.get("containerStatuses") or ():
        if "running" in one["state"]:
            for resource in one.get("allocatedResourcesStatus") or ():
                yield from (device["resourceID"] for device in resource["resources"])


def _asked(spec: Obj) -> dict[str, int]:
    total = {"pods": Quantity.of(1).nano}
    for one in spec["containers"]:
        for name, amount in _amounts((one.get("resources") or {}).get("requests") or {}).items():
            total[name] = total.get(name, 0) + amount
    return total


def _amounts(said: Obj) -> dict[str, int]:
    return {name: Quantity.parse(str(amount)).nano for name, amount in said.items()}

"""Creates the objects of a snapshot in an embedded cluster, before its controllers and nodes start.

Guarantees: an object that the API server refuses is counted with the first reason and the others are created all the
same. A cluster that has been given a snapshot gets no second one: when it starts again, its objects are its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from shoal.client.kind import CONFIG_MAPS, Kind
from shoal.client.port import Api
from shoal.client.refusals import AlreadyExistsError, NotFoundError, RefusedError
from shoal.client.served import answering
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.snapshots.machines import ReproducedNode, claim_drivers, reproduced_node
from shoal.embedded.snapshots.preparation import RECOMPUTED, LeftOut, Prepared, prepared, rank_of, with_uids
from shoal.embedded.snapshots.reading import Obj
from shoal.units.errors import UserError, Where, one_line

_MARK = ("kube-system", "shoal-snapshot")
_MOST_NOTES = 10


class SnapshotStart(NamedTuple):
    """What a cluster starts with."""

    nodes: tuple[ReproducedNode, ...]
    objects: Prepared
    source: str = ""
    """The file."""


def snapshot_start(objects: Sequence[Obj], file: Path) -> SnapshotStart:
    """Raises UserError for a snapshot without nodes."""
    drivers = claim_drivers(objects)
    given = (each for each in objects if each["kind"] == "Node")
    nodes = tuple(reproduced_node(each, drivers.get(each["metadata"]["name"])) for each in given)
    if not nodes:
        raise UserError("has no Node", where=Where(str(file)), fix="add the nodes of the cluster to it")
    machines = {each.machine.name: each.machine for each in nodes}

    @cache
    def devices(node: str) -> DeviceManager | None:
        return DeviceManager(machines[node]) if node in machines else None

    def has_device(node: str, device: str) -> bool:
        found = devices(node)
        return found is not None and found.is_healthy(device)

    return SnapshotStart(nodes, prepared(objects, has_device), file.name)


class _Creation:
    def __init__(self, api: Api, served: Mapping[tuple[str, str], Kind]) -> None:
        self._api = api
        self._served = served
        self._uids: dict[str, str] = {}
        self.created: Counter[str] = Counter()
        self.refused: dict[str, list[str]] = {}
        """By kind: reasons."""

    async def create(self, given: Obj) -> None:
        kind = self._served.get((given["apiVersion"], given["kind"]))
        if kind is None:
            self._refuse(given["kind"], f"{given['apiVersion']} is not served")
            return
        before = given["metadata"].get("uid", "")
        obj = with_uids({key: value for key, value in given.items() if key != "status"}, self._uids)
        obj["metadata"] = {
            key: value for key, value in obj["metadata"].items() if key not in ("uid", "creationTimestamp")
        }
        try:
            made = await self._api.create(kind, obj)
        except AlreadyExistsError:
            await self._learn(kind, given, before)
            return
        except RefusedError as error:
            self._refuse(given["kind"], one_line(str(error)))
            return
        if before:
            self._uids[before] = made.obj()["metadata"]["uid"]
        self.created[given["kind"]] += 1
        if given.get("status") and given["kind"] not in RECOMPUTED:
            await self._report(kind, made.obj(), with_uids(given["status"], self._uids))

    async def _learn(self, kind: Kind, given: Obj, before: str) -> None:
        """Objects that every cluster has, such as the namespace `default`."""
        meta = given["metadata"]
        if before:
            found = await self._api.get(kind, meta.get("namespace", ""), meta["name"])
            self._uids[before] = found.obj()["metadata"]["uid"]

    async def _report(self, kind: Kind, made: Obj, status: Obj) -> None:
        try:
            await self._api.update(kind, {**made, "status": status}, "status")
        except NotFoundError:
            # The kind has no status of its own: it was created with the object.
            return
        except RefusedError as error:
            self._refuse(f"status of {made['kind']}", one_line(str(error)))

    def _refuse(self, kind: str, why: str) -> None:
        self.refused.setdefault(kind, []).append(why)


async def create_snapshot(api: Api, start: SnapshotStart) -> list[str]:
    """Returns what was created and what could not be reproduced, line by line."""
    if await _has_snapshot(api):
        return [f"the objects of {start.source} are not created again: this cluster has started with a snapshot before"]
    served = {
        (kind.api_version, kind.name): kind
        for each in await answering(api)
        for kind in (each.kind._replace(version=version) for version in each.versions)
    }
    creation = _Creation(api, served)
    for node in start.nodes:
        await creation.create(node.obj)
    for each in start.objects.objects:
        await creation.create(each)
    await _mark(api, start)
    return list(_lines(start, creation))


async def _has_snapshot(api: Api) -> bool:
    try:
        await api.get(CONFIG_MAPS, *_MARK)
    except NotFoundError:
        return False
    return True


async def _mark(api: Api, start: SnapshotStart) -> None:
    namespace, name = _MARK
    await api.create(
        CONFIG_MAPS, {"metadata": {"namespace": namespace, "name": name}, "data": {"source": start.source}}
    )


def _lines(start: SnapshotStart, creation: _Creation) -> Iterator[str]:
    made = Counter(each["kind"] for each in start.objects.made)
    kinds = sorted(creation.created, key=lambda kind: (kind != "Node", rank_of(kind), kind))
    counts = {kind: creation.created[kind] - made[kind] for kind in kinds}
    yield f"reproduced from {start.source}: {_counted(counts)}"
    told = Counter(each["kind"] for each in start.objects.made if each["metadata"]["name"] != "default")
    if told:
        yield f"added because others refer to them: {_counted(told)}"
    for left, count in Counter(start.objects.left_out).items():
        yield _not_reproduced(left, count)
    for kind, reasons in creation.refused.items():
        yield f"not reproduced: {len(reasons):,} {kind}: the first: {reasons[0]}"
    notes = [f"node {node.machine.name}: {note}" for node in start.nodes for note in node.notes]
    yield from (f"not reproduced: {note}" for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        yield f"not reproduced: and {len(notes) - _MOST_NOTES:,} more such facts about nodes"


def _not_reproduced(left: LeftOut, count: int) -> str:
    return f"not reproduced: {count:,} {left.kind}: {left.why}"


def _counted(counts: Mapping[str, int]) -> str:
    found = [f"{count:,} {kind}" for kind, count in counts.items() if count > 0]
    return ", ".join(found) or "nothing"

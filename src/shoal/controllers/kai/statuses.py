"""The statuses of KAI's queues and pod groups: what is held and asked for, how many pods are how far, why it waits.

Written beside the rounds, at most once a second and only what is another than before.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from shoal.api.groups.kai import GROUP_ANNOTATION
from shoal.controllers.kai.sights import Queue
from shoal.controllers.kai.sums import Sums, add_to, sums_of, texts_of
from shoal.controllers.kai.verdicts import OTHERS_END, not_whole, verdict
from shoal.controllers.kai.waiting_pods import WaitingPods
from shoal.controllers.kai.work import Work, gang_of
from shoal.controllers.kai.works import Works
from shoal.engine.queues.facts import Amounts
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.store.live.guarded import Guarded
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item
from shoal.store.live.kind import PODS, Kind

_EVERY_S = 1.0
_POOL = "default"
_MARK = GROUP_ANNOTATION.encode()
_INDEX = "kai-group"
_PHASES = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}
Obj = dict[str, Any]


class _Meta(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)


_pods = msgspec.json.Decoder(_Pod)


class Statuses:
    def __init__(
        self, context: Context, works: Works, nodes: Callable[[], int], awaited: Callable[[], Container[str]]
    ) -> None:
        """`nodes`: how many there are; `awaited`: works for which others end."""
        self._awaited = awaited
        self._context = context
        self._works = works
        self._queues: Mapping[str, Queue] = {}
        self._informers: dict[Kind, Informer] = {}
        self._waits: dict[str, None] = {}
        """Works that a cycle looked at and did not let in."""
        self._touched: dict[str, None] = {}
        """Groups, namespace/name, of which something has changed."""
        self._told: dict[str, tuple[str, str]] = {}
        """Works of groups -> why they were said to wait."""
        self._said: dict[str, tuple[str, str]] = {}
        """Pods without a group that were told why they wait."""
        self._waiting = WaitingPods(context, works, nodes)
        self._noted = asyncio.Event()
        self._guarded = Guarded(context.api, context.clock, self._noted.set)
        self._is_ours = False
        """Until a round was decided nothing is known that could be told."""

    def follow(self, kind: Kind, informer: Informer) -> None:
        self._informers[kind] = informer
        if kind == KAI_POD_GROUPS:
            pods = self._context.informers.of(PODS)
            pods.index(_INDEX, _group_of)
            pods.on_change(self._pod_changed)
            informer.on_change(self._group_changed)
        informer.on_change(lambda _, __: self._noted.set())

    def note(self, queues: Mapping[str, Queue]) -> None:
        """A round is over."""
        self._queues = queues
        self._is_ours = True
        self._noted.set()

    def pause(self) -> None:
        """Statuses are somebody else's until the next round is decided here."""
        self._is_ours = False

    def touch(self, work: str) -> None:
        """It is another one than before."""
        self._touched[gang_of(work)] = None

    def stir(self, work: str) -> None:
        self._waits[work] = None
        self.touch(work)

    def forget(self, work: str) -> None:
        """It is let in."""
        self._waits.pop(work, None)
        self._said.pop(work, None)
        self._told.pop(work, None)
        self.touch(work)

    def all_again(self) -> None:
        self._waits.update({key: None for key, work in self._works.all.items() if not work.there})

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._noted.wait()
            self._noted.clear()
            if self._is_ours and not await self._write_all():
                self._noted.set()
            await self._context.clock.sleep(_EVERY_S)

    # Inside

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        groups = {name for item in (before, after) if item is not None for name in _group_of(item)}
        if groups:
            self._touched.update(dict.fromkeys(groups))
            self._noted.set()

    def _group_changed(self, _: Item | None, after: Item | None) -> None:
        if after is not None:
            self._touched[f"{after.namespace}/{after.name}"] = None

    async def _write_all(self) -> bool:
        sums = sums_of(self._queues, self._works.all.values())
        is_done = True
        for item in self._informers.get(KAI_QUEUES, ()):
            is_done = await self._write(KAI_QUEUES, item, self._of_queue(item.name, sums)) and is_done
        is_done = await self._write_groups(sums) and is_done
        self._tell_pods(sums)
        return await self._waiting.tell(self._waits, partial(self._verdict, sums=sums)) and is_done

    async def _write_groups(self, sums: Sums) -> bool:
        """Only those of which something is new: every pod of KAI's has a group, and there may be ten thousand."""
        groups = self._informers.get(KAI_POD_GROUPS)
        for key in self._waits:
            work = self._works.all.get(key)
            # What a queue has left changes with the work of others.
            if work is not None and work.waiting and self._told.get(key) != self._verdict(work, sums):
                self.touch(key)
        touched, self._touched = self._touched, {}
        for name in touched:
            item = groups.get(*name.split("/", 1)) if groups is not None else None
            if item is None:
                continue
            if not await self._write(KAI_POD_GROUPS, item, self._of_group(item, self._works.of_origin(name), sums)):
                self._touched[name] = None
        return not self._touched

    def _of_queue(self, name: str, sums: Sums) -> Obj:
        below = sorted(queue.name for queue in self._queues.values() if queue.spec.parent_queue == name)
        found: Obj = {
            what: texts_of(sums.get((name, what), {})) for what in ("allocated", "allocatedNonPreemptible", "requested")
        }
        return found | ({"childQueues": below} if below else {"childQueues": None})

    def _of_group(self, item: Item, works: list[Work], sums: Sums) -> Obj:
        phases = Counter(
            _pods.decode(pod.data).status.phase
            for pod in self._context.informers.of(PODS).index(_INDEX, _group_of)[f"{item.namespace}/{item.name}"]
        )
        there, asked, fixed = Amounts(), Amounts(), Amounts()
        for work in works:
            held = work.amounts(work.there.values())
            add_to(there, held)
            add_to(asked, held)
            add_to(asked, work.amounts(work.waiting.values()))
            add_to(fixed, held if work.is_fixed else {})
        found: Obj = {field: phases.get(phase, 0) for phase, field in _PHASES.items()}
        found["resourcesStatus"] = {
            "allocated": texts_of(there),
            "allocatedNonPreemptible": texts_of(fixed),
            "requested": texts_of(asked),
        }
        waiting = next((work for work in works if self._is_refused(work)), None)
        found["schedulingConditions"] = None if waiting is None else [self._why(item, waiting, sums)]
        return found

    def _is_refused(self, work: Work) -> bool:
        if not work.waiting:
            return False
        return work.key in self._waits or not (work.there or work.is_whole)

    def _why(self, item: Item, work: Work, sums: Sums) -> Obj:
        reason, message = self._told[work.key] = self._verdict(work, sums)
        known = (item.obj().get("status") or {}).get("schedulingConditions") or [{}]
        said = (known[-1].get("reason"), known[-1].get("message")) == (reason, message)
        return {
            "type": "UnschedulableOnNodePool",
            "nodePool": _POOL,
            "status": "True",
            "reason": reason,
            "message": message,
            "reasons": [{"reason": reason, "message": message}],
            "transitionID": str(uuid5(NAMESPACE_URL, f"{item.uid}/{reason}/{message}")),
            "lastTransitionTime": known[-1]["lastTransitionTime"] if said else self._context.clock.text(),
        }

    def _verdict(self, work: Work, sums: Sums) -> tuple[str, str]:
        def held(queue: str, fixed: bool) -> Amounts:
            return sums.get((queue, "allocatedNonPreemptible" if fixed else "allocated"), {})

        if not work.is_whole:
            return not_whole(work.exist, work.origin.minimum or 0)
        if work.origin.name in self._awaited():
            return OTHERS_END
        asked = work.amounts(work.waiting.values())
        return verdict(self._queues, work.origin.queue, asked, held, is_fixed=work.is_fixed)

    def _tell_pods(self, sums: Sums) -> None:
        """A pod without a group is told by an Event, whenever that is another reason."""
        for key in list(self._waits):
            work = self._works.all.get(key)
            if work is None or not work.waiting:
                self.forget(key)
                continue
            said = self._verdict(work, sums)
            if work.origin.name not in work.waiting or self._said.get(key) == said:
                continue
            self._said[key] = said
            namespace, _, name = work.origin.name.partition("/")
            item = self._context.informers.of(PODS).get(namespace, name)
            if item is not None:
                meta = {"name": name, "namespace": namespace, "uid": item.uid}
                about = {"kind": PODS.name, "apiVersion": PODS.api_version, "metadata": meta}
                self._context.events.record(about, "Unschedulable", f"{said[0]}: {said[1]}", type_="Warning")

    async def _write(self, kind: Kind, item: Item, wanted: Obj) -> bool:
        before = item.obj().get("status") or {}
        body: Obj = {}
        for name, value in wanted.items():
            if before.get(name) != value and not (value is None and name not in before):
                gone = dict.fromkeys(before.get(name) or {}) if isinstance(value, dict) else {}
                body[name] = {**gone, **value} if isinstance(value, dict) else value
        if not body:
            return True
        return await self._guarded.merged(kind, item, {"status": body}, "status")


def has_succeeded(context: Context, group: str) -> bool:
    """Whether one of the pods of a group has."""
    pods = context.informers.of(PODS).index(_INDEX, _group_of)[group]
    return any(_pods.decode(pod.data).status.phase == "Succeeded" for pod in pods)


def _group_of(item: Item) -> list[str]:
    if _MARK not in item.data:
        return []
    try:
        name = (_pods.decode(item.data).metadata.annotations or {}).get(GROUP_ANNOTATION, "")
    except msgspec.DecodeError:
        return []
    return [f"{item.namespace}/{name}"] if name else []

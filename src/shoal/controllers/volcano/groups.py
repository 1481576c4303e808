"""Pod groups and queues, looked at together: who is let in, how groups do, what their queues come to.

All of them in one look, a moment after something changed: whether a group is let in depends on every other group of its
queue, and a look from memory costs less than the writes that follow it. Everything is read from the objects, so whoever
comes after a crash decides the same again; a write that somebody was quicker with is decided anew.

Rejected: one look per queue. Queues share what those above them may take, so two looks at once would let in too much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

import msgspec
from msgspec.structs import replace

from shoal.controllers.volcano.absence import IsAway
from shoal.controllers.volcano.enqueueing import Candidate, Decision, enqueue
from shoal.controllers.volcano.group_statuses import GroupPen, says, status_of
from shoal.controllers.volcano.names import GROUP, SCHEDULER, reference
from shoal.controllers.volcano.phases import Verdict, judge
from shoal.controllers.volcano.queue_statuses import QueuePen
from shoal.controllers.volcano.queue_tree import QueueTree
from shoal.controllers.volcano.settling import SETTLE_S, Settling
from shoal.controllers.volcano.sights import GroupStatus, PodGroup, group_of, pod_of, queue_of
from shoal.controllers.volcano.tallies import Tally, tally
from shoal.controllers.volcano.waiting_pods import EARLY_S, MOST_AT_ONCE, WaitingPods
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.store.live.item import Item, Key
from shoal.store.live.kind import PODS, PRIORITY_CLASSES
from shoal.store.live.loop import Loop
from shoal.store.live.refusals import NotFoundError
from shoal.units.errors import ConflictError, ShoalError

Write = Callable[[], Awaitable[None]]
_ROUND: Key = ("", "round")
_GATHER_S = 0.1
_ABREAST = 32
_GROUP = GROUP.encode()
_INDEX = "volcano group"


class _PriorityClass(msgspec.Struct, rename="camel"):
    value: int = 0
    global_default: bool = False


class Groups:
    def __init__(self, context: Context, is_away: IsAway) -> None:
        self._context = context
        self._is_away = is_away
        self._events = context.events.named(SCHEDULER)
        self._pen = GroupPen(context, self._events)
        self._queue_pen = QueuePen(context)
        informers = context.informers
        self._groups, self._queues = informers.of(VOLCANO_POD_GROUPS), informers.of(VOLCANO_QUEUES)
        self._classes, pods = informers.of(PRIORITY_CLASSES), informers.of(PODS)
        self._members = pods.index(_INDEX, groups_named)
        self._waiting = WaitingPods(context, self._members)
        self._tallies: dict[str, Tally] = {}
        self._judged: dict[Key, tuple[int, Tally]] = {}
        """The version of a group and its tally when nothing was to be written of it."""
        self._settling = Settling()
        self._told: set[tuple[str, str]] = set()
        """Faults of groups that were told: uid and words."""
        self.loop = Loop(context, self._reconcile, workers=1)
        self.loop.need(VOLCANO_POD_GROUPS, VOLCANO_QUEUES, PODS, PRIORITY_CLASSES)
        pods.on_change(self._pod_changed)
        for informer in (self._groups, self._queues, self._classes):
            informer.on_change(self._changed)
        self.wake()

    def wake(self) -> None:
        self.loop.wake(_ROUND, _GATHER_S)

    def _changed(self, before: Item | None, after: Item | None) -> None:
        del before, after
        self.wake()

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        for item in (before, after):
            for group in groups_named(item) if item is not None else ():
                self._tallies.pop(group, None)
                self.wake()

    # -- one look ---------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> float | None:
        del key
        if not self._is_away():
            return None
        queues = [queue for queue in map(queue_of, self._queues) if queue is not None]
        tree = QueueTree(queues)
        candidates = list(self._candidates())
        decision = enqueue(tree, candidates)
        writes: list[Write] = [write for one in candidates if (write := self._write_of(one, decision)) is not None]
        writes += [partial(self._queue_pen.write, due) for due in self._queue_pen.due(tree, candidates, decision)]
        writes += [partial(self._queue_pen.create, name) for name in self._queue_pen.missing(tree)]
        await all_of(writes)
        soon_s = await self._tell_pods(candidates, decision)
        return min(soon_s or SETTLE_S, SETTLE_S) if self._settling.is_due else soon_s

    async def _tell_pods(self, candidates: list[Candidate], decision: Decision) -> float | None:
        there = {"/".join(item.key) for item in self._groups}
        strays, is_early = self._waiting.strays(there, self._context.clock.seconds())
        untold = list(islice(chain(self._waiting.untold(candidates, decision), strays), MOST_AT_ONCE))
        await all_of([partial(self._waiting.tell, *one) for one in untold])
        if len(untold) == MOST_AT_ONCE:
            return _GATHER_S
        return EARLY_S if is_early else None

    def _candidates(self) -> Iterator[Candidate]:
        priorities, default = self._priorities()
        there: set[str] = set()
        for item in self._groups:
            group = group_of(item)
            if group is None:
                self._tell_fault(item, "InvalidPodGroup", f"cannot be read: {group_of.fault(item)}")
                continue
            if group.metadata.deletion_timestamp is not None:
                continue
            there.add("/".join(item.key))
            wanted = group.spec.priority_class_name
            if wanted and wanted not in priorities:
                words = (
                    f'priorityclasses.scheduling.k8s.io "{wanted}" not found, the group counts with priority {default}'
                )
                self._tell_fault(item, "PriorityClassNotFound", words)
            yield Candidate(group, self._tally(item), priorities.get(wanted, default))
        self._forget(there)

    def _forget(self, there: set[str]) -> None:
        """What is known of groups that are gone."""
        for gone in self._tallies.keys() - there:
            del self._tallies[gone]
        for key in [key for key in self._judged if "/".join(key) not in there]:
            del self._judged[key]
        self._settling.keep(there)
        if self._told:
            uids = {item.uid for item in self._groups}
            self._told = {one for one in self._told if one[0] in uids}

    def _tally(self, item: Item) -> Tally:
        key = "/".join(item.key)
        found = self._tallies.get(key)
        if found is None:
            pods = map(pod_of, self._members[key])
            found = self._tallies[key] = tally(pod for pod in pods if pod is not None)
        return found

    def _priorities(self) -> tuple[dict[str, int], int]:
        known = {item.name: item.read(_PriorityClass) for item in self._classes}
        default = next((one.value for one in known.values() if one.global_default), 0)
        return {name: one.value for name, one in known.items()}, default

    def _tell_fault(self, item: Item, reason: str, words: str) -> None:
        if (item.uid, words) not in self._told:
            self._told.add((item.uid, words))
            about = reference(VOLCANO_POD_GROUPS, item.key, item.uid)
            self._events.record(about, reason, words, type_="Warning")

    def _write_of(self, one: Candidate, decision: Decision) -> Write | None:
        item = self._groups.get(*one.key)
        if item is None:
            return None
        judged = (item.version, one.tally)
        if not one.group.is_waiting and self._judged.get(one.key) == judged:
            return None
        refusal = decision.refused.get(one.key)
        verdict = judge(one.group, one.tally, refusal, is_let_in=one.key in decision.let_in)
        is_settled = self._is_settled(one, verdict)
        status = status_of(one.group, one.tally, verdict, self._context.clock.text())
        if not is_settled:
            status = replace(status, conditions=one.group.status.conditions)
        if status == one.group.status:
            if is_settled:
                self._judged[one.key] = judged
            return None
        quota = refusal.message if is_settled and refusal is not None and refusal.is_quota else ""
        return partial(self._write, item, one.group, status, quota)

    def _is_settled(self, one: Candidate, verdict: Verdict) -> bool:
        if verdict.is_ready or says(one.group.status, verdict):
            self._settling.said(one.key)
            return True
        return self._settling.are_settled(one.key, verdict.message, self._context.clock.seconds())

    async def _write(self, item: Item, group: PodGroup, status: GroupStatus, quota: str) -> None:
        await self._pen.write(item, group, status)
        self._pen.tell(reference(VOLCANO_POD_GROUPS, item.key, item.uid), group.status, status, quota)


def groups_named(item: Item) -> tuple[str, ...]:
    """The group that a pod belongs to, as namespace/name."""
    pod = pod_of(item) if _GROUP in item.data else None
    return (f"{item.namespace}/{pod.group}",) if pod is not None and pod.group else ()


async def all_of(writes: Sequence[Write]) -> None:
    """All are tried; then the first failure that is not mended by looking again, or else a conflict."""
    failures: list[ShoalError] = []
    for at in range(0, len(writes), _ABREAST):
        begun = [write() for write in writes[at : at + _ABREAST]]
        for answer in await asyncio.gather(*begun, return_exceptions=True):
            if isinstance(answer, NotFoundError):
                continue
            if isinstance(answer, ShoalError):
                failures.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
    for failure in sorted(failures, key=lambda one: isinstance(one, ConflictError)):
        raise failure

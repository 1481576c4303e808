"""Writes the statuses of pod groups and queues, from the pods and from the decisions of the scheduling loop.

One loop handles all groups and queues a moment after something changed, and at most once a second, which is the period
of Volcano's sessions. Bindings come first: in a backlog the statuses wait for some seconds, and a group that is
admitted and gets its nodes in the same moment gets one status, not two. The admission of a group that lacks pods is
written at once, because its owner creates its pods only then. After a write conflict the loop makes the statuses anew.

Rejected: a status for each step of each group. It costs the server as much as a binding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.item import Item, Key
from shoal.client.kind import PODS, PRIORITY_CLASSES
from shoal.client.loop import Loop
from shoal.client.refusals import NotFoundError
from shoal.controllers.volcano.group_status_writer import (
    SETTLE_S,
    GroupStatusWriter,
    MessageDebounce,
    is_reported,
    next_status,
)
from shoal.controllers.volcano.names import reference
from shoal.controllers.volcano.queue_status_writer import QueueStatusWriter
from shoal.controllers.volcano.views import group_of, pod_of, queue_of
from shoal.engine.queues.disciplines.volcano.group_phases import GroupPhaseResult, assess, is_ready
from shoal.engine.queues.disciplines.volcano.objects import GROUP, SCHEDULER, GroupStatus, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.pod_counts import CountedGroup, GroupPodCounts, count_pods
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree
from shoal.engine.queues.disciplines.volcano.session_result import SessionResult
from shoal.units.errors import ConflictError, ShoalError

Write = Callable[[], Awaitable[None]]
Decided = Callable[[Sequence[QueuedPodGroup]], SessionResult | None]
"""What the last session decided about groups; None before the first."""
_PASS: Key = ("", "round")
_GATHER_S = 0.1
_EVERY_S = 1.0
"""Groups and queues change with every binding, and their statuses are not written for each."""
_BACKLOG_S, _LONGEST_BACKLOG_S = 0.5, 5.0
"""While more groups are being bound than are written at once: when the loop looks again, and when it writes anyway."""
_PARALLEL_WRITES = 32
_GROUP = GROUP.encode()
_INDEX = "volcano group"


class _PriorityClass(msgspec.Struct, rename="camel"):
    value: int = 0
    global_default: bool = False


class StatusController:
    def __init__(self, context: Context, is_volcano_absent: Callable[[], bool], decided: Decided) -> None:
        self._context = context
        self._decided = decided
        self._is_volcano_absent = is_volcano_absent
        self._events = context.events.named(SCHEDULER)
        self._group_writer = GroupStatusWriter(context, self._events)
        self._queue_writer = QueueStatusWriter(context)
        informers = context.informers
        self._groups, self._queues = informers.of(VOLCANO_POD_GROUPS), informers.of(VOLCANO_QUEUES)
        self._classes, pods = informers.of(PRIORITY_CLASSES), informers.of(PODS)
        self._members = pods.index(_INDEX, groups_named)
        self._counts: dict[str, GroupPodCounts] = {}
        self._up_to_date: dict[Key, tuple[int, GroupPodCounts]] = {}
        """The version and the pod counts of each group whose status was up to date."""
        self._next_s = float("-inf")
        """When all statuses are looked at again, if anything changed."""
        self._backlog_s: float | None = None
        """Since when statuses wait for bindings."""
        self._debounce = MessageDebounce()
        self._warned: set[tuple[str, str]] = set()
        """Warnings already recorded about groups: uid and message."""
        self.loop = Loop(context, self._reconcile, workers=1)
        self.loop.need(VOLCANO_POD_GROUPS, VOLCANO_QUEUES, PODS, PRIORITY_CLASSES)
        pods.on_change(self._pod_changed)
        for informer in (self._groups, self._queues, self._classes):
            informer.on_change(self._changed)
        self.wake()

    def wake(self, *, is_urgent: bool = False) -> None:
        """`is_urgent`: groups were admitted, and some may have no pods yet."""
        after_s = 0.0 if is_urgent else self._due_s() - self._context.clock.seconds()
        self.loop.wake(_PASS, max(after_s, _GATHER_S))

    def _changed(self, before: Item | None, after: Item | None) -> None:
        del before, after
        self.wake()

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        for item in (before, after):
            for group in groups_named(item) if item is not None else ():
                if self._counts.pop(group, None) is not None:
                    self.wake()

    # -- one pass ---------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> float | None:
        del key
        if not self._is_volcano_absent():
            return None
        now_s = self._context.clock.seconds()
        if now_s < self._due_s():
            await self._write_urgent()
            return self._next_s - now_s
        queues = [queue for queue in map(queue_of, self._queues) if queue is not None]
        tree = QueueTree(queues)
        writes: list[Write] = [partial(self._queue_writer.create, name) for name in self._queue_writer.missing(tree)]
        candidates = list(self._candidates())
        decision = self._decided([one.group for one in candidates])
        if decision is not None and self._are_bindings_first(candidates, decision, now_s):
            self._next_s = now_s + _BACKLOG_S
            await self._write_urgent()
            return _BACKLOG_S
        if decision is not None:
            writes += self._group_writes(candidates, decision)
            updates = self._queue_writer.updates(tree, candidates, decision)
            writes += [partial(self._queue_writer.write, update) for update in updates]
        await all_of(writes)
        self._backlog_s = None
        if writes:
            self._next_s = now_s + _EVERY_S
        return SETTLE_S if self._debounce.has_pending else None

    def _due_s(self) -> float:
        """When the next pass is due; a clock that was set back does not delay it."""
        self._next_s = min(self._next_s, self._context.clock.seconds() + _EVERY_S)
        return self._next_s

    def _are_bindings_first(self, groups: Iterable[CountedGroup], decision: SessionResult, now_s: float) -> bool:
        being_bound = sum(one.key in decision.starting and not is_ready(one.group, one.counts) for one in groups)
        if being_bound <= _PARALLEL_WRITES:
            self._backlog_s = None
            return False
        if self._backlog_s is None or self._backlog_s > now_s:
            self._backlog_s = now_s
        return now_s - self._backlog_s < _LONGEST_BACKLOG_S

    async def _write_urgent(self) -> None:
        """Write the admission of groups whose pods are created only after it."""
        waiting = [
            CountedGroup(group, self._counts_of(item))
            for item in self._groups
            if (group := group_of(item)) is not None and group.is_waiting and not self._has_its_pods(group)
        ]
        decision = self._decided([one.group for one in waiting]) if waiting else None
        if decision is not None:
            await all_of(self._group_writes([one for one in waiting if one.key in decision.enqueued], decision))

    def _has_its_pods(self, group: QueuedPodGroup) -> bool:
        return self._members.count("/".join(group.metadata.key)) >= max(group.spec.min_member, 1)

    def _group_writes(self, groups: Iterable[CountedGroup], decision: SessionResult) -> list[Write]:
        return [write for one in groups if (write := self._write_of(one, decision)) is not None]

    def _candidates(self) -> Iterator[CountedGroup]:
        priorities, default = self._priorities()
        existing: set[str] = set()
        for item in self._groups:
            group = group_of(item)
            if group is None:
                self._warn(item, "InvalidPodGroup", f"invalid PodGroup: {group_of.fault(item)}")
                continue
            if group.metadata.deletion_timestamp is not None:
                continue
            existing.add("/".join(item.key))
            wanted = group.spec.priority_class_name
            if wanted and wanted not in priorities:
                words = f'priorityclasses.scheduling.k8s.io "{wanted}" not found: the group has priority {default}'
                self._warn(item, "PriorityClassNotFound", words)
            yield CountedGroup(group, self._counts_of(item))
        self._forget(existing)

    def _forget(self, existing: set[str]) -> None:
        """Drops what is stored about groups that no longer exist."""
        for gone in self._counts.keys() - existing:
            del self._counts[gone]
        for key in [key for key in self._up_to_date if "/".join(key) not in existing]:
            del self._up_to_date[key]
        self._debounce.retain(existing)
        if self._warned:
            uids = {item.uid for item in self._groups}
            self._warned = {one for one in self._warned if one[0] in uids}

    def _counts_of(self, item: Item) -> GroupPodCounts:
        key = "/".join(item.key)
        found = self._counts.get(key)
        if found is None:
            pods = map(pod_of, self._members[key])
            found = self._counts[key] = count_pods(pod for pod in pods if pod is not None)
        return found

    def _priorities(self) -> tuple[dict[str, int], int]:
        known = {item.name: item.read(_PriorityClass) for item in self._classes}
        default = next((one.value for one in known.values() if one.global_default), 0)
        return {name: one.value for name, one in known.items()}, default

    def _warn(self, item: Item, reason: str, words: str) -> None:
        if (item.uid, words) not in self._warned:
            self._warned.add((item.uid, words))
            about = reference(VOLCANO_POD_GROUPS, item.key, item.uid)
            self._events.record(about, reason, words, type_="Warning")

    def _write_of(self, one: CountedGroup, decision: SessionResult) -> Write | None:
        item = self._groups.get(*one.key)
        if item is None:
            return None
        state = (item.version, one.counts)
        if not one.group.is_waiting and self._up_to_date.get(one.key) == state:
            return None
        refusal = decision.refused.get(one.key)
        result = assess(one.group, one.counts, refusal, is_enqueued=one.key in decision.enqueued)
        if one.key in decision.starting and not result.is_ready:
            return None
        is_stable = self._is_stable(one, result)
        status = next_status(one.group, one.counts, result, self._context.clock.text())
        if not is_stable:
            if one.group.is_waiting and self._has_its_pods(one.group):
                # It may start in a moment, and then one write says so.
                return None
            status = replace(status, conditions=one.group.status.conditions)
        if status == one.group.status:
            if is_stable:
                self._up_to_date[one.key] = state
            return None
        quota_message = refusal.message if is_stable and refusal is not None and refusal.is_quota else ""
        return partial(self._write, item, one.group, status, quota_message)

    def _is_stable(self, one: CountedGroup, result: GroupPhaseResult) -> bool:
        if result.is_ready or is_reported(one.group.status, result):
            self._debounce.clear(one.key)
            return True
        return self._debounce.is_stable(one.key, f"{result.phase}: {result.message}", self._context.clock.seconds())

    async def _write(self, item: Item, group: QueuedPodGroup, status: GroupStatus, quota_message: str) -> None:
        await self._group_writer.write(item, group, status)
        self._group_writer.record_events(
            reference(VOLCANO_POD_GROUPS, item.key, item.uid), group.status, status, quota_message
        )


def groups_named(item: Item) -> tuple[str, ...]:
    """The group that a pod belongs to, as namespace/name."""
    pod = pod_of(item) if _GROUP in item.data else None
    return (f"{item.namespace}/{pod.group}",) if pod is not None and pod.group else ()


async def all_of(writes: Sequence[Write]) -> None:
    """Runs all writes; then raises the first failure that is not a conflict, or else a conflict."""
    failures: list[ShoalError] = []
    for at in range(0, len(writes), _PARALLEL_WRITES):
        started = [write() for write in writes[at : at + _PARALLEL_WRITES]]
        for answer in await asyncio.gather(*started, return_exceptions=True):
            if isinstance(answer, NotFoundError):
                continue
            if isinstance(answer, ShoalError):
                failures.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
    for failure in sorted(failures, key=lambda one: isinstance(one, ConflictError)):
        raise failure

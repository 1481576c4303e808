"""Records which pod held which device, from the watches of pods and nodes.

Guarantees: a row is written as a whole, so repeating it changes nothing; moments come from the objects where they have
them, so a recorder that starts again finds what it missed; pods that vanished while none ran end at the last moment
that was recorded, and the time until now is a gap, in which free devices are unknown. Nothing waits for the recorder:
changes are gathered and read a few at a time. One process records, because the storage has one writer. Moments are
whole seconds, as in Kubernetes' objects, so that a device is never given before it is free.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import NAMESPACES, NODES, PODS
from shoal.client.served import Served
from shoal.controllers.history.borrowed_quota import BorrowedQuota
from shoal.controllers.history.claimed_devices import ClaimedDevices
from shoal.controllers.history.created_pods import CreatedPodCounter
from shoal.controllers.history.recorded_namespaces import RecordedNamespaces
from shoal.controllers.history.recorded_quotas import RecordedQuotas
from shoal.cost.prices.recorded_prices import PriceRecorder
from shoal.cost.records import FULL_SHARE, Holding, Machine, Span, Wait
from shoal.store.history.dcgm_samples import DeviceRow
from shoal.store.history.history import UsageHistory
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.node_rows import NodeDeviceNames, read_node
from shoal.store.history.pod_rows import (
    RecordedPod,
    holding_of,
    merged,
    read_pod,
    same_but_ended,
    wait_of,
)
from shoal.store.history.samples import DeviceSample

_log = logging.getLogger("shoal.history")
_INTERVAL_S, _BUSY_S, _GIVING_WAY_S = 10.0, 0.1, 2.0
"""Between two rounds: when nothing is left, while changes are left, and while bindings wait for the processor."""
_AT_ONCE = 40
"""Pods that are read before other tasks run: a few milliseconds."""
_MOST_LEFT = 100_000
"""Changes that are kept while bindings go first."""
_COMPACTED_S = 60.0
_SHORTEST_GAP_MS = 15_000
"""A restart that takes less is a failover: watches have seen the changes between."""


_INSTANCE = re.compile("[0-9]{1,3}")


class _Gone(NamedTuple):
    item: Item
    at_ms: int
    is_preempted: bool = False
    """Its Workload was being preempted."""


class HistoryRecorder:
    """`history` is opened by the caller, who closes it after `run` has ended."""

    def __init__(
        self,
        context: Context,
        history: UsageHistory,
        served: Served | None = None,
        is_urgent: Callable[[], bool] = lambda: False,
        prices: PriceRecorder | None = None,
    ) -> None:
        """`served`: without it, devices of claims are not recorded. `is_urgent`: whether bindings of this process wait
        for the processor. `prices`: without them, none are recorded."""
        self._prices = prices
        self._is_urgent = is_urgent
        self.name = context.name
        self._context = context
        self._history = history
        self._dirty: dict[str, Item] = {}
        """By uid, as `_dirty_nodes`."""
        self._dirty_nodes: dict[str, Item] = {}
        self._gone: list[_Gone] = []
        self._gone_nodes: list[_Gone] = []
        self._machines: dict[str, Machine] = {}
        """Open rows by uid."""
        self._names: dict[str, NodeDeviceNames] = {}
        """By node."""
        self._holdings: dict[str, Holding] = {}
        self._waits: dict[str, Wait] = {}
        self._taken: dict[str, dict[str, int]] = {}
        """Node -> device -> the shares that pods hold."""
        self._created = CreatedPodCounter(context)
        self._compacted_s = 0.0
        self._has_ended = False
        self._claimed = ClaimedDevices(context, served, self._node_again, self._pod_again)
        self._borrowed = BorrowedQuota(context, served)
        self._quotas = RecordedQuotas(context, served, lambda: self._borrowed.cluster_queues)
        self._borrowed.on_cluster_queue = self._quotas.members_changed
        self._namespaces = RecordedNamespaces(context)
        for kind in (PODS, NODES, NAMESPACES):
            context.informers.of(kind)

    async def run(self) -> None:
        informers = self._context.informers
        caches = [informers.of(kind) for kind in (NODES, PODS, NAMESPACES)]
        for cache in caches:
            await cache.synced()
        self._resume()
        informers.of(NODES).on_change(self._node_changed)
        informers.of(PODS).on_change(self._pod_changed)
        try:
            while True:
                is_done = self.record()
                await self._context.clock.sleep(_INTERVAL_S if is_done else self._pause_s())
        finally:
            # What was seen is stored; the next recorder continues from there.
            while not self.record():
                pass
            self._has_ended = True

    def record(self) -> bool:
        """Store the next changes; whether none is left."""
        now = self._now_ms()
        changes = LedgerChanges(now)
        for uid in list(self._dirty_nodes):
            self._read_node(self._dirty_nodes.pop(uid), changes, now)
        if self._prices is not None and self._prices.has_begun(now):
            for uid, machine in self._machines.items():
                self._store_machine(uid, machine, changes, now)
        for gone in self._gone_nodes:
            self._end_node(gone, changes)
        self._gone_nodes.clear()
        # Before the pods that were given their devices.
        ended, self._gone = self._gone[:_AT_ONCE], self._gone[_AT_ONCE:]
        for gone in ended:
            # It may have a change that was not read yet.
            if (item := self._dirty.pop(gone.item.uid, None)) is not None:
                self._read_pod(item, changes, gone.at_ms)
            self._end_pod(gone, changes)
        for uid in list(self._dirty)[:_AT_ONCE]:
            self._read_pod(self._dirty.pop(uid), changes, now)
        is_done = not self._dirty and not self._gone and self._created.judge(_AT_ONCE)
        if is_done:
            if (budgets := self._namespaces.changed_budgets()) is not None:
                self._history.team_budgets.write(budgets, now)
                self._namespaces.stored()
            for kind, quotas in self._quotas.changed():
                self._history.quotas.write(kind, quotas, now)
            for uid, held in list(self._borrowed.changed(self._holdings, now, is_new=bool(changes.holdings))):
                self._holdings[uid] = changes.holdings[uid] = held
        if is_done or changes.machines or changes.holdings or changes.waits:
            self._write(changes, is_done=is_done)
        self._compact(now)
        return is_done

    def _write(self, changes: LedgerChanges, *, is_done: bool) -> None:
        if not is_done:
            # Earlier changes than now are not stored yet.
            changes.recorded_ms = self._history.ledger.recorded_ms() or changes.recorded_ms
        with self._history.tables.transaction():
            self._history.ledger.write(changes)
            # With the moment from which a later recorder goes on, so that none is counted twice.
            if is_done:
                self._history.created.add(self._created.counted)
        if is_done:
            self._created.stored()

    def _pause_s(self) -> float:
        """Moments come from the objects, so what is recorded later is as exact."""
        is_late = len(self._dirty) + len(self._gone) > _MOST_LEFT
        return _GIVING_WAY_S if self._is_urgent() and not is_late else _BUSY_S

    def machines(self) -> list[Machine]:
        """Those that there are now."""
        return list(self._machines.values())

    def holdings(self) -> list[Holding]:
        """What pods hold now."""
        return list(self._holdings.values())

    def store_samples(self, samples: Sequence[DeviceSample]) -> None:
        if not self._has_ended:
            self._history.samples.add(round(self._context.clock.seconds() * 1000), samples)

    def part_of(self, node: str, row: DeviceRow) -> str | None:
        """The MIG instance of which the exporter of a node speaks: the one that its pod holds of the GPU. None for a
        device that is not of this node."""
        names = self._names.get(node)
        if names is None or row.device not in names.shares:
            return None
        if not row.instance:
            return row.device
        for held in self._holdings.values():
            if (held.machine, held.holder.namespace, held.holder.pod) == (node, row.namespace, row.pod):
                for one in held.devices:
                    if one.device == row.device and one.part:
                        return one.part
        return f"{row.device}/{row.instance}" if _INSTANCE.fullmatch(row.instance) else None

    # -- what is seen -----------------------------------------------------------------------------------------------

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        if self._has_ended:
            return
        if before is not None and (after is None or after.uid != before.uid):
            self._gone.append(_Gone(before, self._now_ms(), self._borrowed.is_preempted(before.uid)))
        if after is not None:
            self._dirty[after.uid] = after

    def _node_changed(self, before: Item | None, after: Item | None) -> None:
        if self._has_ended:
            return
        if before is not None and (after is None or after.uid != before.uid):
            self._gone_nodes.append(_Gone(before, self._now_ms()))
        if after is not None:
            self._dirty_nodes[after.uid] = after

    # -- rows -------------------------------------------------------------------------------------------------------

    def _read_node(self, item: Item, changes: LedgerChanges, now: int) -> None:
        before = self._machines.get(item.uid)
        try:
            found = read_node(item, before, now, partial(self._claimed.extend, item.name))
        except msgspec.DecodeError as error:
            _log.warning("node %s is not recorded: %s", item.name, error)
            return
        had = self._names.get(item.name)
        self._names[item.name] = found.names
        self._store_machine(item.uid, found.machine, changes, now)
        if had is not None and had != found.names:
            self._read_again(item.name)

    def _store_machine(self, uid: str, machine: Machine, changes: LedgerChanges, now: int) -> None:
        before = self._machines.get(uid)
        if self._prices is not None:
            machine = self._prices.priced(machine, before, now)
        if machine != before:
            self._machines[uid] = changes.machines[uid] = machine

    def _end_node(self, gone: _Gone, changes: LedgerChanges) -> None:
        before = self._machines.pop(gone.item.uid, None)
        self._names.pop(gone.item.name, None)
        self._taken.pop(gone.item.name, None)
        if before is not None:
            changes.machines[gone.item.uid] = msgspec.structs.replace(before, end_ms=max(gone.at_ms, before.start_ms))

    def _node_again(self, name: str) -> None:
        if not self._has_ended and (item := self._context.informers.of(NODES).get("", name)) is not None:
            self._dirty_nodes[item.uid] = item

    def _pod_again(self, uid: str) -> None:
        if not self._has_ended and uid in self._holdings:
            held = self._holdings[uid]
            item = self._context.informers.of(PODS).get(held.holder.namespace, held.holder.pod)
            if item is not None and item.uid == uid:
                self._dirty[uid] = item

    def _read_again(self, node: str) -> None:
        """The names of its devices have changed, so what its pods hold may be read differently."""
        for item in self._context.informers.of(PODS):
            row = self._holdings.get(item.uid)
            if row is not None and row.machine == node:
                self._dirty.setdefault(item.uid, item)

    def _read_pod(self, item: Item, changes: LedgerChanges, now: int) -> None:
        try:
            pod = read_pod(item)
        except (msgspec.DecodeError, ValueError) as error:
            _log.warning("pod %s/%s is not recorded: %s", item.namespace, item.name, error)
            return
        before = self._holdings.get(item.uid)
        self._borrowed.seen(item.uid, pod)
        if before is not None:
            holder = before.holder
        else:
            holder = self._namespaces.holder(pod)
            holder = msgspec.structs.replace(holder, queue=self._borrowed.queue_of(item.uid, holder.queue))
        self._created.count(item, pod, holder)
        self._read_wait(item.uid, pod, changes, now)
        if not pod.spec.node_name or (pod.is_finished and before is None and self._is_stored("holding", item.uid)):
            return
        names = self._names.get(pod.spec.node_name, NodeDeviceNames())
        taken = self._taken.setdefault(pod.spec.node_name, {})
        if before is not None:
            _take(taken, before, -1)
        now_held = holding_of(pod, holder, names, taken, now)
        if now_held is None:
            return
        if claimed := self._claimed.of_pod(pod):
            now_held = msgspec.structs.replace(now_held, devices=(*now_held.devices, *claimed))
        held = merged(before, now_held)
        if held.end_ms is None:
            _take(taken, held, 1)
            self._holdings[item.uid] = held
        else:
            self._holdings.pop(item.uid, None)
            if self._borrowed.is_preempted(item.uid):
                held = msgspec.structs.replace(held, is_preempted=True)
            held = self._borrowed.ended(item.uid, held)
        if held != before:
            changes.holdings[item.uid] = held

    def _read_wait(self, uid: str, pod: RecordedPod, changes: LedgerChanges, now: int) -> None:
        before = self._waits.get(uid)
        if before is None and (uid in self._holdings or self._is_stored("wait", uid)):
            return
        holder = before.holder if before is not None else self._namespaces.holder(pod)
        found = wait_of(pod, holder, now)
        if found is None:
            return
        if before is not None and before.reason and not found.reason:
            # The last reason explains the wait, also after it has ended.
            found = msgspec.structs.replace(found, reason=before.reason)
        if found.end_ms is None:
            self._waits[uid] = found
        else:
            self._waits.pop(uid, None)
        if found != before:
            changes.waits[uid] = found

    def _end_pod(self, gone: _Gone, changes: LedgerChanges) -> None:
        uid = gone.item.uid
        self._created.forget(uid)
        held = self._holdings.pop(uid, None)
        if held is not None:
            _take(self._taken.get(held.machine, {}), held, -1)
            ended = same_but_ended(held, gone.at_ms, is_preempted=gone.is_preempted)
            changes.holdings[uid] = self._borrowed.ended(uid, ended)
        self._borrowed.forget(uid)
        wait = self._waits.pop(uid, None)
        if wait is not None:
            changes.waits[uid] = msgspec.structs.replace(wait, end_ms=max(wait.start_ms, gone.at_ms))

    def _is_stored(self, table: Literal["holding", "wait"], uid: str) -> bool:
        """Whether its end was recorded, perhaps before this recorder started."""
        row = self._history.tables.get(table, uid)
        return row is not None and row.end_ms is not None

    # -- a start ----------------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Continue the rows of an earlier recorder; end those of which the objects are gone."""
        now, ledger = self._now_ms(), self._history.ledger
        until = ledger.recorded_ms()
        found = ledger.open()
        if until is None:
            return
        self._created.resume(until)
        pods, nodes = ({item.uid for item in self._context.informers.of(kind)} for kind in (PODS, NODES))
        changes = LedgerChanges(now)
        if now - until >= _SHORTEST_GAP_MS:
            changes.gap = Span(until, now)
        for uid, machine in found.machines.items():
            if uid in nodes:
                self._machines[uid] = machine
            else:
                changes.machines[uid] = msgspec.structs.replace(machine, end_ms=max(machine.start_ms, now))
        for uid, held in found.holdings.items():
            if uid in pods:
                self._holdings[uid] = held
                self._borrowed.resume(uid, held, until)
                _take(self._taken.setdefault(held.machine, {}), held, 1)
            else:
                changes.holdings[uid] = same_but_ended(held, until)
        for uid, wait in found.waits.items():
            if uid in pods:
                self._waits[uid] = wait
            else:
                changes.waits[uid] = msgspec.structs.replace(wait, end_ms=max(wait.start_ms, until))
        ledger.write(changes)

    # internals

    def _compact(self, now: int) -> None:
        # A clock that was ahead may step back.
        if abs(now / 1000 - self._compacted_s) >= _COMPACTED_S:
            self._compacted_s = now / 1000
            self._history.samples.compact(now)

    def _now_ms(self) -> int:
        return int(self._context.clock.seconds()) * 1000


def _take(taken: dict[str, int], held: Holding, sign: int) -> None:
    for one in held.devices:
        left = taken.get(one.device, 0) + sign * one.share
        if left > 0:
            taken[one.device] = min(left, FULL_SHARE * 64)
        else:
            taken.pop(one.device, None)

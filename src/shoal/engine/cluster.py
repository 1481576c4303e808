"""The facts: what every node has, holds and is, in columns, fed by events and never rebuilt.

One writer (the events, and the ledger on behalf of a decision) changes single rows and notes each in a change log;
everything derived from the rows keeps a cursor into that log. So a decision costs the nodes that changed, not all
nodes, and there is no snapshot to copy per round. Rows are reused when nodes leave, but ties are broken by a rank
that never changes while a node lives, so the order of nodes is stable whatever the rows.

Rejected: one object per node (a scan in Python), and a frozen copy per round (at 50,000 nodes the copy alone costs
more than a thousand placements).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.api.taints import Taint
from shoal.engine import facts
from shoal.engine.admission_failures import AdmissionFailures
from shoal.engine.asks import Ask, counted
from shoal.engine.changes import ChangeLog
from shoal.engine.charges import Charge, Charges
from shoal.engine.device_demand import FULL_MILLI
from shoal.engine.devices.planes import DevicePlanes
from shoal.engine.domain_counts.all_counts import DomainCounts
from shoal.engine.dra_allocator import Allocator
from shoal.engine.events import NodeFacts
from shoal.engine.facts import GPU_BEST, GPU_WHOLE
from shoal.engine.gang_members import Gangs
from shoal.engine.groups import BudgetFacts, TopologyFacts
from shoal.engine.growth import capacity_for, grown, widened
from shoal.engine.labels import LEAST_VALUES, Labels
from shoal.engine.pending import Pending
from shoal.engine.pod_identity import NOBODY
from shoal.engine.pod_rules import NO_RULES
from shoal.engine.pods import PodAllocation, PodState
from shoal.engine.ports import Ports
from shoal.engine.summaries import Summaries
from shoal.units.errors import BugError

RANK_BITS: Final = 32
LAST_RANK: Final = (1 << RANK_BITS) - 1

_LEAST_CHARGES: Final = 4096

GPU_MODEL_LABEL: Final = "nvidia.com/gpu.product"


_PLAIN = slice(facts.CPU, facts.PODS + 1)

NOMINATED: Final = PodState.NOMINATED
ASSUMED: Final = PodState.ASSUMED
BOUND: Final = PodState.BOUND


class Cluster:
    """Columns over nodes, the pods on them and the pods that wait."""

    def __init__(self, *, least_values: int = LEAST_VALUES) -> None:
        self.resources = facts.ResourceColumns()
        self.charges = Charges(self.resources)
        self.rows = 0
        """Rows in use or retired; arrays are longer (see `growth`)."""
        self.capacity = 0
        """Length of the columns."""
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.free: NDArray[np.int64] = np.zeros((0, self.resources.width), np.int64)
        self.total: NDArray[np.int64] = np.zeros((0, self.resources.width), np.int64)
        self.devices = DevicePlanes()
        self._summaries = Summaries(self.devices)
        self.alive: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.unschedulable: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.rank: NDArray[np.int64] = np.zeros(0, np.int64)
        self.labels = Labels(least_values)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self.taint_set: NDArray[np.int32] = np.zeros(0, np.int32)
        self.ports = Ports()
        self.dra = Allocator(self.names, self.labels)
        """Devices of dynamic resource allocation, and the claims on them."""
        self.pods: dict[str, PodAllocation] = {}
        self.gangs = Gangs()
        self.namespaces: dict[str, dict[str, str]] = {}
        """Labels by namespace."""
        self.counts = DomainCounts(self.namespaces)
        """Who stands in which domain, as far as rules about pods ask for it."""
        self.pending = Pending(self.gangs, self.counts)
        self.guessed: dict[int, dict[str, None]] = {}
        """Pods on nodes whose devices are not known, by row."""
        self.others_place_gpus = False
        """Whether other schedulers place pods with GPUs on the same nodes."""
        self.terminating: dict[str, None] = {}
        """Pods on nodes that are being terminated."""
        self.nominated: dict[str, None] = {}
        """Pods that wait for room which others are leaving."""
        self.topologies: dict[str, TopologyFacts] = {}
        self.budgets: dict[tuple[str, str], BudgetFacts] = {}
        """By (namespace, name)."""
        self.changes = ChangeLog()
        """Rows whose free amounts, devices or standing changed."""
        self.static_changes = ChangeLog()
        """Rows whose labels, taints, rank, plain allocatable amounts or existence changed."""
        self.refusing = AdmissionFailures(self.changes, self.static_changes)
        """Rows whose kubelets refused pods."""
        self.news = 0
        """Counts what was heard of gangs, topologies and budgets."""
        self.gpu_free_milli = 0
        """GPU compute free on all nodes together."""
        self._taint_set_of: dict[tuple[Taint, ...], int] = {(): 0}
        self._most_charges = _LEAST_CHARGES
        self._retired: list[int] = []
        self._unasked: dict[str, dict[int, int]] = {}
        """Amounts by row of resources that no pod asked for so far, which therefore have no column."""
        self._next_rank = 0
        self._on_row: dict[int, dict[str, None]] = {}

    @property
    def version(self) -> int:
        """Grows with every change of the facts that placements depend on."""
        return self.changes.end + self.static_changes.end + self.counts.version + self.dra.version + self.news

    @property
    def width(self) -> int:
        """Columns of the record; everything compiled against it must be compiled again when it grows."""
        return int(self.free.shape[1])

    def all_rows(self) -> NDArray[np.int64]:
        return np.arange(self.rows, dtype=np.int64)

    def pods_on(self, row: int) -> list[str]:
        return list(self._on_row.get(row, ()))

    def column(self, resource: str) -> int:
        """The record's column of a resource, made on first sight."""
        column = self.resources.find(resource)
        if column is None:
            column = self.resources.add(resource)
            if self.resources.width > self.width:
                self._widen()
            for row, amount in self._unasked.pop(resource, {}).items():
                self.total[row, column] = amount
                self.free[row, column] = amount
            self._summaries.add_profile(resource, column, self.free, self.total)
        return column

    def charge(self, ask: Ask) -> Charge:
        """What the ask needs and takes, as vectors of the record's width."""
        charge = self.charges.known.get(ask)
        if charge is None:
            for resource, amount in counted(ask).items():
                if amount > 0:
                    self.column(resource)
            self._forget_unused_charges()
            if ask.near is not NO_RULES:
                self.counts.read(ask.near)
            charge = self.charges.compile(ask)
        return charge

    def _forget_unused_charges(self) -> None:
        """Asks come and go for years: once in a while drop those that no pod on a node or in line has any more."""
        if len(self.charges.known) < self._most_charges:
            return
        used = {allocation.charge for allocation in self.pods.values()} | self.pending.charges()
        self.charges.known = {charge.ask: charge for charge in self.charges.known.values() if charge in used}
        self._most_charges = max(2 * len(self.charges.known), _LEAST_CHARGES)

    # -- nodes ---------------------------------------------------------------------------------------------

    def put_node(self, node: NodeFacts) -> int:
        """Add the node or bring it up to date; returns its row."""
        ranked = False
        row = self.row_of.get(node.name)
        if row is None:
            row = self._new_row(node)
        elif ranked := node.rank is not None and node.rank != self.rank.item(row):
            self._set_rank(row, node.rank or 0)
        admits = self._admits_by(row)
        plain = self.total[row, _PLAIN].tobytes()
        self._put_amounts(row, node)
        labels = dict(node.labels)
        if node.gpu_model:
            labels[GPU_MODEL_LABEL] = node.gpu_model
        before = (self.alive.item(row), self.taint_set.item(row), self.unschedulable.item(row))
        self.taint_set[row] = self._taints(node.taints)
        self.unschedulable[row] = node.unschedulable
        self.alive[row] = True
        after = (True, self.taint_set.item(row), node.unschedulable)
        if before != after or ranked or self.labels.of(row) != labels:
            # A node reports itself every few seconds; only news of this kind makes every shape look again.
            self._put_labels(row, labels)
            self.dra.node_changed(row)
        elif plain != self.total[row, _PLAIN].tobytes():
            self.static_changes.append(row)
        if admits != self._admits_by(row):
            self.refusing.lift(row)
        self.changes.append(row)
        return row

    def _admits_by(self, row: int) -> object:
        """What the kubelet of a row that refused a pod admits pods by, besides the pods that are there."""
        if row not in self.refusing:
            return None
        unasked = {name: by_row.get(row) for name, by_row in self._unasked.items()}
        standing = (self.taint_set.item(row), self.unschedulable.item(row))
        return self.total[row].tobytes(), unasked, self.devices.count.item(row), self.devices.layout(row), standing

    def drop_node(self, name: str) -> list[tuple[str, PodAllocation]]:
        """Forget the node and the pods on it, which are returned."""
        row = self.row_of.pop(name)
        left = [(key, self.release(key)) for key in self.pods_on(row)]
        self.gpu_free_milli -= int(self.total[row, facts.GPU_MILLI])
        self.alive[row] = False
        self.refusing.lift(row)
        self.names[row] = ""
        self.free[row] = 0
        self.total[row] = 0
        for by_row in self._unasked.values():
            by_row.pop(row, None)
        self.devices.clear(row)
        self._put_labels(row, {})
        self.taint_set[row] = 0
        self.unschedulable[row] = False
        self.changes.append(row)
        self._retired.append(row)
        return left

    def put_others(self, *, place_gpus: bool) -> None:
        """Other schedulers place pods with GPUs on the same nodes, or do not."""
        if place_gpus != self.others_place_gpus:
            self.others_place_gpus = place_gpus
            for row in self.row_of.values():
                self.changes.append(row)
                self.static_changes.append(row)

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """The namespace carries these labels."""
        if self.namespaces.get(name) != labels:
            self.namespaces[name] = dict(labels)
            self.counts.namespaces_changed()

    # -- pods: only events and the ledger call these ---------------------------------------------------------

    def hold(self, key: str, allocation: PodAllocation) -> None:
        """Put a pod on a row."""
        row = allocation.row
        charge = allocation.charge
        self.pods[key] = allocation
        on_row = self._on_row.get(row)
        if on_row is None:
            self._on_row[row] = {key: None}
        else:
            on_row[key] = None
        free = self.free[row]
        free -= charge.taken
        grant = allocation.grant
        if grant is not None:
            nominated = allocation.state is NOMINATED
            if nominated or row in self.devices.odd or not grant.is_plain():
                self.gpu_free_milli += self._summaries.take(row, free, charge, grant, nominated=nominated)
            else:
                self.gpu_free_milli -= charge.gpu_milli
                left = self.devices.take(row, grant)
                free[GPU_WHOLE] = whole = left.count(FULL_MILLI)
                free[GPU_BEST] = FULL_MILLI if whole else max(left)
            if grant.claims:
                self.dra.take(key, row, grant.claims)
            if allocation.guessed:
                self.guessed.setdefault(row, {})[key] = None
        if charge.ask.host_ports:
            self.ports.take(row, charge.ask.host_ports)
        who = allocation.who
        if who is not NOBODY or (allocation.state is not BOUND and allocation.state is not ASSUMED):
            self._note(key, allocation)
        if self.counts.active:
            self.counts.comes(row, charge.ask, who.traits, allocation.is_terminating)
        self.changes.append(row)

    def release(self, key: str) -> PodAllocation:
        """Take a pod off its row; exactly the inverse of `hold`."""
        allocation = self.pods.pop(key)
        row = allocation.row
        charge = allocation.charge
        on_row = self._on_row[row]
        del on_row[key]
        if not on_row:
            del self._on_row[row]
        free = self.free[row]
        free += charge.taken
        grant = allocation.grant
        if grant is not None:
            nominated = allocation.state is NOMINATED
            if nominated or row in self.devices.odd or not grant.is_plain():
                self.gpu_free_milli += self._summaries.give(row, free, charge, grant, nominated=nominated)
            else:
                self.gpu_free_milli += charge.gpu_milli
                left = self.devices.give(row, grant)
                free[GPU_WHOLE] = whole = left.count(FULL_MILLI)
                free[GPU_BEST] = FULL_MILLI if whole else max(left)
            if grant.claims:
                self.dra.give(key, row, grant.claims)
            if allocation.guessed:
                self._forget_guess(key, row)
        if charge.ask.host_ports:
            self.ports.give(row, charge.ask.host_ports)
        who = allocation.who
        if who is not NOBODY or (allocation.state is not BOUND and allocation.state is not ASSUMED):
            self._unnote(key, allocation)
        if self.counts.active:
            self.counts.goes(row, charge.ask, who.traits, allocation.is_terminating)
        self.changes.append(row)
        return allocation

    def _forget_guess(self, key: str, row: int) -> None:
        on_row = self.guessed[row]
        del on_row[key]
        if not on_row:
            del self.guessed[row]

    def mark_terminating(self, key: str, terminating: bool = True) -> None:
        """A pod on a node is being terminated, or (undone) is not."""
        allocation = self.pods[key]
        if allocation.state is NOMINATED:
            raise BugError(f"terminating {key}, which is only nominated")
        if self.counts.active and allocation.is_terminating != terminating:
            self.counts.ends(allocation.row, allocation.who.traits, terminating)
            self.changes.append(allocation.row)
        allocation.mark_terminating(terminating)
        if terminating:
            self.terminating[key] = None
        else:
            del self.terminating[key]

    def reserve(self, row: int, charge: Charge, sign: int) -> None:
        """Set room aside (+1) or free it again (-1) for a pod that will certainly come, e.g. a DaemonSet's."""
        self.free[row] -= sign * charge.taken
        self.changes.append(row)

    def _note(self, key: str, allocation: PodAllocation) -> None:
        """What is kept of pods that are more than their ask."""
        if allocation.who.group:
            self.gangs.runs(allocation.who.group, key)
        if allocation.is_terminating:
            self.terminating[key] = None
        if allocation.state is NOMINATED:
            self.nominated[key] = None

    def _unnote(self, key: str, allocation: PodAllocation) -> None:
        if allocation.who.group:
            self.gangs.runs_no_more(allocation.who.group, key)
        self.terminating.pop(key, None)
        self.nominated.pop(key, None)

    # -- inside ----------------------------------------------------------------------------------------------

    def _new_row(self, node: NodeFacts) -> int:
        if self._retired:
            row = self._retired.pop()
            self.names[row] = node.name
        else:
            row = self.rows
            self.rows += 1
            self.names.append(node.name)
            self._grow(capacity_for(self.rows, self.capacity))
        self.row_of[node.name] = row
        self._set_rank(row, self._next_rank if node.rank is None else node.rank)
        return row

    def _set_rank(self, row: int, rank: int) -> None:
        self.rank[row] = rank
        self._next_rank = max(self._next_rank, rank + 1)

    def _put_amounts(self, row: int, node: NodeFacts) -> None:
        total = self._record(row, node.allocatable)
        held = [self.pods[key].charge for key in self._on_row.get(row, ())]
        lines = (self.free[row], self.total[row], total)
        self.gpu_free_milli += self._summaries.put(row, node.gpus, node.layout, lines, held)
        self.total[row] = total

    def _put_labels(self, row: int, labels: Mapping[str, str]) -> None:
        self.labels.put(row, labels)
        self.labels.forget_unused(len(self.row_of))
        # Afterwards, so that readers that check this log see a new epoch of codes too.
        self.static_changes.append(row)

    def _record(self, row: int, amounts: Mapping[str, int]) -> NDArray[np.int64]:
        record = np.zeros(self.width, np.int64)
        for by_row in self._unasked.values():
            by_row.pop(row, None)
        for name, amount in amounts.items():
            column = self.resources.find(name)
            if column is None:
                self._unasked.setdefault(name, {})[row] = amount
            else:
                record[column] = amount
        record[facts.CPU_SCORED] = record[facts.CPU]
        record[facts.MEMORY_SCORED] = record[facts.MEMORY]
        return record

    def _taints(self, taints: tuple[Taint, ...]) -> int:
        code = self._taint_set_of.get(taints)
        if code is None:
            code = len(self.taint_sets)
            self.taint_sets.append(taints)
            self._taint_set_of[taints] = code
        return code

    def _grow(self, rows: int) -> None:
        if rows <= self.capacity:
            return
        self.free = grown(self.free, rows)
        self.total = grown(self.total, rows)
        self.devices.grow(rows)
        self.unschedulable = grown(self.unschedulable, rows)
        self.rank = grown(self.rank, rows)
        self.taint_set = grown(self.taint_set, rows)
        self.labels.grow(rows)
        self.alive = grown(self.alive, rows)
        self.changes.reserve(rows)
        self.capacity = rows

    def _widen(self) -> None:
        self.free = widened(self.free, self.resources.width)
        self.total = widened(self.total, self.resources.width)
        self.charges.widen()

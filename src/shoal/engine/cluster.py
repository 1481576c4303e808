"""Stores the facts of all nodes and pods in columns over the nodes, updated by events and never rebuilt.

One writer (the events, and the ledger during a decision) changes single rows and records each in a change log.
Everything derived from the rows keeps a cursor into that log, so the cost of a decision grows with the nodes that
changed and no cycle copies a snapshot. The rows of deleted nodes are reused. Ties are broken by a rank that does not
change while a node exists, so the order of nodes does not depend on rows.

Rejected: one object per node (a scan in Python), and a frozen copy per cycle (at 50,000 nodes the copy alone costs
more than a thousand placements).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
from shoal.engine.node_taints import NodeTaints
from shoal.engine.pending import Pending
from shoal.engine.pod_identity import NO_IDENTITY
from shoal.engine.pod_rules import NO_RULES
from shoal.engine.pods import PodAllocation, PodState
from shoal.engine.ports import Ports
from shoal.engine.summaries import Summaries
from shoal.engine.unrequested_amounts import UnrequestedAmounts
from shoal.units.errors import BugError

RANK_BITS: Final = 32
LAST_RANK: Final = (1 << RANK_BITS) - 1

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
        self.taints = NodeTaints()
        self.ports = Ports()
        self.dra = Allocator(self.names, self.labels)
        """Devices of dynamic resource allocation, and the claims on them."""
        self.pods: dict[str, PodAllocation] = {}
        self.gangs = Gangs()
        self.namespaces: dict[str, dict[str, str]] = {}
        """Labels by namespace."""
        self.counts = DomainCounts(self.namespaces)
        """The pods in each domain that rules about other pods select."""
        self.pending = Pending(self.gangs, self.counts)
        self.guessed: dict[int, dict[str, None]] = {}
        """Pods on nodes whose devices are not known, by row."""
        self.others_place_gpus = False
        """Whether other schedulers place pods with GPUs on the same nodes."""
        self.terminating: dict[str, None] = {}
        """Pods on nodes that are being terminated."""
        self.nominated: dict[str, None] = {}
        """Pods that wait until the pods on their nominated nodes have terminated."""
        self.topologies: dict[str, TopologyFacts] = {}
        self.budgets: dict[tuple[str, str], BudgetFacts] = {}
        """By (namespace, name)."""
        self.changes = ChangeLog()
        """Rows whose free amounts, devices, taints or existence changed."""
        self.static_changes = ChangeLog()
        """Rows whose labels, taints, rank, plain allocatable amounts, existence or existence of devices changed."""
        self.refusing = AdmissionFailures(self.changes, self.static_changes)
        """Rows whose kubelets refused pods."""
        self.news = 0
        """Counts the changes of gangs, topologies and budgets, and of pods that keep their places."""
        self.gpu_free_milli = 0
        """GPU compute free on all nodes together."""
        self._retired: list[int] = []
        self._unrequested = UnrequestedAmounts()
        self._next_rank = 0
        self._on_row: dict[int, dict[str, None]] = {}

    @property
    def version(self) -> int:
        """Grows with every change of the facts that placements depend on."""
        return self.changes.end + self.static_changes.end + self.counts.version + self.dra.version + self.news

    @property
    def width(self) -> int:
        """Columns of the record. When it grows, everything compiled against it must be compiled again."""
        return int(self.free.shape[1])

    def all_rows(self) -> NDArray[np.int64]:
        return np.arange(self.rows, dtype=np.int64)

    def pods_on(self, row: int) -> list[str]:
        return list(self._on_row.get(row, ()))

    def column(self, resource: str) -> int:
        """The record's column of a resource, added at the first request."""
        column = self.resources.find(resource)
        if column is None:
            column = self.resources.add(resource)
            if self.resources.width > self.width:
                self._widen()
            for row, amount in self._unrequested.pop(resource).items():
                self.total[row, column] = amount
                self.free[row, column] = amount
            self._summaries.add_profile(resource, column, self.free, self.total)
        return column

    def charge(self, ask: Ask) -> Charge:
        """The amounts that the ask needs and takes, as vectors of the record's width."""
        charge = self.charges.known.get(ask)
        if charge is None:
            for resource, amount in counted(ask).items():
                if amount > 0:
                    self.column(resource)
            if self.charges.is_full:
                # No pod on a node and no pending pod has the others any more.
                self.charges.keep({each.charge for each in self.pods.values()} | self.pending.charges())
            if ask.near is not NO_RULES:
                self.counts.read(ask.near)
            charge = self.charges.compile(ask)
        return charge

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
        plain = self._plain_amounts(row)
        self._put_amounts(row, node)
        labels = dict(node.labels)
        if node.gpu_model:
            labels[GPU_MODEL_LABEL] = node.gpu_model
        before = (self.alive.item(row), self.taints.code.item(row), self.unschedulable.item(row))
        self.taints.put(row, node.taints)
        self.unschedulable[row] = node.unschedulable
        self.alive[row] = True
        after = (True, self.taints.code.item(row), node.unschedulable)
        if before != after or ranked or self.labels.of(row) != labels:
            # Nodes update their status every few seconds; only these changes make each request class evaluate it again.
            self._put_labels(row, labels)
            self.dra.node_changed(row)
        elif plain != self._plain_amounts(row):
            self.static_changes.append(row)
        if admits != self._admits_by(row):
            self.refusing.lift(row)
        self.changes.append(row)
        return row

    def _plain_amounts(self, row: int) -> object:
        """The amounts that distinguish nodes apart from their pods and single devices."""
        return self.total[row, _PLAIN].tobytes(), self.devices.count.item(row) > 0

    def _admits_by(self, row: int) -> object:
        """The facts by which the kubelet of a row that refused a pod admits pods, besides the pods on it."""
        if row not in self.refusing:
            return None
        amounts = (self.total[row].tobytes(), self._unrequested.of(row))
        devices = (self.devices.count.item(row), self.devices.layout(row))
        return amounts, devices, self.taints.code.item(row), self.unschedulable.item(row)

    def drop_node(self, name: str) -> list[tuple[str, PodAllocation]]:
        """Remove the node and the pods on it, which are returned."""
        row = self.row_of.pop(name)
        left = [(key, self.release(key)) for key in self.pods_on(row)]
        self.gpu_free_milli -= int(self.total[row, facts.GPU_MILLI])
        self.alive[row] = False
        self.refusing.lift(row)
        self.names[row] = ""
        self.free[row] = 0
        self.total[row] = 0
        self._unrequested.clear(row)
        self.devices.clear(row)
        self._put_labels(row, {})
        self.taints.put(row, ())
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
        if who is not NO_IDENTITY or (allocation.state is not BOUND and allocation.state is not ASSUMED):
            self._note(key, allocation)
        if self.counts.active:
            self.counts.add_pod(row, charge.ask, who.traits, allocation.is_terminating)
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
        if who is not NO_IDENTITY or (allocation.state is not BOUND and allocation.state is not ASSUMED):
            self._unnote(key, allocation)
        if self.counts.active:
            self.counts.remove_pod(row, charge.ask, who.traits, allocation.is_terminating)
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
        """Reserve capacity (+1) or release it (-1) for a pod that will be created later, e.g. a DaemonSet's."""
        self.free[row] -= sign * charge.taken
        self.changes.append(row)

    def _note(self, key: str, allocation: PodAllocation) -> None:
        """Record the gang, termination and nomination of a pod."""
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
        total = self._unrequested.split(row, node.allocatable, self.resources, self.width)
        held = [self.pods[key].charge for key in self._on_row.get(row, ())]
        lines = (self.free[row], self.total[row], total)
        self.gpu_free_milli += self._summaries.put(row, node.gpus, node.layout, lines, held)
        self.total[row] = total

    def _put_labels(self, row: int, labels: Mapping[str, str]) -> None:
        self.labels.put(row, labels)
        self.labels.forget_unused(len(self.row_of))
        # Last, so that readers of this log also see a new epoch of codes.
        self.static_changes.append(row)

    def _grow(self, rows: int) -> None:
        if rows <= self.capacity:
            return
        self.free = grown(self.free, rows)
        self.total = grown(self.total, rows)
        self.devices.grow(rows)
        self.unschedulable = grown(self.unschedulable, rows)
        self.rank = grown(self.rank, rows)
        self.taints.grow(rows)
        self.labels.grow(rows)
        self.alive = grown(self.alive, rows)
        self.changes.reserve(rows)
        self.capacity = rows

    def _widen(self) -> None:
        self.free = widened(self.free, self.resources.width)
        self.total = widened(self.total, self.resources.width)
        self.charges.widen()

"""Costs as allocations, the form of OpenCost's API: one set for each step of a window, allocations by name in it.

The amounts are those of `statement`: what pods held is in their allocation, all other time of nodes in `__idle__`. The
totals of a set with idle time, and of commitments that were not used, add up to the invoice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec

from shoal.cost.allocation_record import (
    AllocationProperties,
    AllocationSet,
    AllocationSums,
    SetWindow,
    allocation_of,
)
from shoal.cost.allocation_request import LABEL, OWNERS, AllocationRequest, IdleShare
from shoal.cost.prices.billing import billing
from shoal.cost.prices.machine_prices import machine_prices, missing_note
from shoal.cost.records import Holding, Machine, Records
from shoal.cost.report import PriceBasis
from shoal.cost.statement import SHARED, Period, statement
from shoal.units.calendar_windows import rfc3339
from shoal.units.errors import UserError, Where

IDLE, UNALLOCATED, UNUSED = "__idle__", "__unallocated__", "__unused_commitment__"
OTHERS = "__other_namespaces__"
"""What pods held in namespaces that the reader may not see."""
_MOST_ALLOCATIONS = 50_000
_FREE = "\x1e"
"""The group of what no pod held; the name of the node follows."""
_SEPARATOR = "\x1f"


class AllocationViewer(NamedTuple):
    """What the reader of an answer may see."""

    sees: Callable[[str], bool]
    """Whether it may see the pods of a namespace."""
    lists_nodes: bool = True


class AllocationAnswer(msgspec.Struct, frozen=True):
    sets: list[AllocationSet]
    notes: list[str]


_Set = dict[str, AllocationSums]


def allocations(
    records: Records,
    request: AllocationRequest,
    basis: PriceBasis,
    cluster: str,
    viewer: AllocationViewer | None = None,
) -> AllocationAnswer:
    """`viewer`: None for a reader that sees all. Machines without a price are left out, with a note. Raises UserError
    where no machine has a price, for a request with too many allocations, and for one that the viewer may not make."""
    names_nodes = viewer is None or viewer.lists_nodes
    if request.idle_by_node and not names_nodes:
        raise UserError("your account may not list nodes", where=Where(path="idleByNode"))
    prices = machine_prices(records.machines, basis.file, basis.today, basis.measured_watts)
    if not names_nodes and prices.unknown and not prices.by_machine:
        raise UserError("no price of any node is known", where=basis.where)
    prices.check(basis.where)
    bill = billing(records.machines, prices, basis.file, request.window)
    groups = _Groups(request, cluster, viewer)
    records = msgspec.structs.replace(
        records, machines=tuple(one for one in records.machines if one.name in bill.curves)
    )
    rows = statement(records, bill.curves, Period(request.window, request.steps), groups.of, basis.mode)
    ends = (*request.steps[1:], request.window.end_ms)
    sets: list[_Set] = [{} for _ in request.steps]
    _add_time(sets, records, groups, list(zip(request.steps, ends, strict=True)))
    for row in rows:
        _at(sets[row.day], groups.name(row.group)).add_row(row)
    for line in bill.others:
        # The lines of unused commitments have their hour, and shared costs the begin of the window.
        at = max(0, sum(1 for start in request.steps if start <= line.start_ms) - 1)
        if line.kind == SHARED:
            for step, part in _parts(request, line.amount):
                _at(sets[step], UNALLOCATED).shared += part
        else:
            _at(sets[at], UNUSED).external += line.amount
    spans = list(zip(request.steps, ends, strict=True))
    if request.accumulates:
        sets, spans = [_accumulated(sets)], [(request.window.start_ms, request.window.end_ms)]
    return AllocationAnswer(
        [_written(one, request, span, cluster) for one, span in zip(sets, spans, strict=True)],
        [*([note] if (note := missing_note(prices.unknown, names_nodes=names_nodes)) else []), *prices.notes],
    )


class _Groups:
    """The name of each allocation, by the properties of the request."""

    def __init__(self, request: AllocationRequest, cluster: str, viewer: AllocationViewer | None) -> None:
        self._request, self._cluster, self._viewer = request, cluster, viewer
        self._names: dict[tuple[int, str], str] = {}
        self.properties: dict[tuple[int, str], AllocationProperties] = {}

    def of(self, held: Holding | None, machine: Machine) -> str:
        if held is None:
            return _FREE + (machine.name if self._request.idle_by_node else "")
        key = (id(held), machine.name)
        found = self._names.get(key)
        if found is None:
            found, self.properties[key] = self._named(held, machine)
            self._names[key] = found
        return found

    def name(self, group: str) -> str:
        if not group.startswith(_FREE):
            return group
        node = group.removeprefix(_FREE)
        return f"{node}/{IDLE}" if node else IDLE

    def _named(self, held: Holding, machine: Machine) -> tuple[str, AllocationProperties]:
        holder = held.holder
        if self._viewer is not None and not self._viewer.sees(holder.namespace):
            return OTHERS, AllocationProperties(cluster=self._cluster)
        aggregate = self._request.aggregate
        name = "/".join(_value(held, machine, self._cluster, one) or UNALLOCATED for one in aggregate)
        return name, _properties(held, machine, self._cluster, aggregate)


def _value(held: Holding, machine: Machine, cluster: str, name: str) -> str:
    holder = held.holder
    if name == "cluster":
        return cluster
    if name == "node":
        return machine.name
    if name == "model":
        return machine.model
    if name == "controller":
        return holder.job
    if name == "controllerKind":
        return holder.owner_kind.lower()
    if name in OWNERS:
        return holder.job if holder.owner_kind.lower() == name else ""
    if name.startswith(LABEL):
        return dict(holder.labels).get(name.removeprefix(LABEL), "")
    # The ledger has pods, and not their containers.
    return "" if name == "container" else str(getattr(holder, name))


def _properties(held: Holding, machine: Machine, cluster: str, aggregate: Sequence[str]) -> AllocationProperties:
    """All of a pod; of several pods those by which they were put together."""
    holder = held.holder
    if "pod" in aggregate:
        return AllocationProperties(
            cluster=cluster,
            node=machine.name,
            namespace=holder.namespace,
            controller_kind=holder.owner_kind.lower(),
            controller=holder.job,
            pod=holder.pod,
            team=holder.team,
            queue=holder.queue,
            gang=holder.gang,
            model=machine.model,
            labels=dict(holder.labels),
        )
    found = AllocationProperties(cluster=cluster)
    for name in aggregate:
        value = _value(held, machine, cluster, name)
        if name.startswith(LABEL):
            found.labels = found.labels | {name.removeprefix(LABEL): value}
        elif name in OWNERS:
            found.controller, found.controller_kind = value, name if value else ""
        elif name != "container":
            setattr(found, "controller_kind" if name == "controllerKind" else name, value)
    return found


def _add_time(sets: Sequence[_Set], records: Records, groups: _Groups, spans: Sequence[tuple[int, int]]) -> None:
    """When each allocation was, and what was requested in it."""
    machines: dict[str, list[Machine]] = {}
    for machine in records.machines:
        machines.setdefault(machine.name, []).append(machine)
    for held in records.holdings:
        of_name = machines.get(held.machine, ())
        for machine in of_name:
            start = max(held.start_ms, machine.start_ms)
            ends = [one for one in (held.end_ms, machine.end_ms) if one is not None]
            name = ""
            for at, (begin, end) in enumerate(spans):
                first, last = max(start, begin), min([*ends, end])
                if first >= last:
                    continue
                name = name or groups.of(held, machine)
                found = _at(sets[at], name)
                found.cover(first, last)
                found.describe(groups.properties[id(held), machine.name])
                found.core_ms += held.cpu_milli * (last - first)
                found.mib_ms += held.memory_mib * (last - first)


def _at(found: _Set, name: str) -> AllocationSums:
    one = found.get(name)
    if one is None:
        one = found[name] = AllocationSums()
    return one


def _parts(request: AllocationRequest, amount: Decimal) -> Iterable[tuple[int, Decimal]]:
    """A cost of the whole window, by the length of the steps."""
    ends = (*request.steps[1:], request.window.end_ms)
    for at, (start, end) in enumerate(zip(request.steps, ends, strict=True)):
        yield at, amount * (end - start) / request.window.length_ms


def _accumulated(sets: Sequence[_Set]) -> _Set:
    found: _Set = {}
    for one in sets:
        for name, sums in one.items():
            into = _at(found, name)
            if sums.end_ms:
                into.cover(sums.start_ms, sums.end_ms)
            if sums.properties is not None:
                into.describe(sums.properties)
            for field in ("core_ms", "mib_ms", "cpu", "gpu", "ram", "shared", "external"):
                setattr(into, field, getattr(into, field) + getattr(sums, field))
            for field in ("gpu_hours", "used", "measured", "held_idle"):
                setattr(into, field, getattr(into, field) + getattr(sums, field))
    return found


def _written(found: _Set, request: AllocationRequest, span: tuple[int, int], cluster: str) -> AllocationSet:
    idle = {name: one for name, one in found.items() if name.endswith(IDLE)}
    held = {name: one for name, one in found.items() if name not in idle and name != UNUSED}
    if len(held) > _MOST_ALLOCATIONS:
        what = f"{len(held)} allocations in one set are too many"
        raise UserError(what, where=Where(path="aggregate"), fix="write aggregate=namespace, or a shorter window")
    _share_costs(held)
    shared: dict[str, tuple[Decimal, Decimal, Decimal]] = {}
    if request.shares_idle and held:
        shared = _shared_idle(held, idle.values(), request.shares_idle)
        idle = {}
    window = SetWindow(rfc3339(span[0]), rfc3339(span[1]))
    written = {name: allocation_of(name, one, window, span, shared.get(name)) for name, one in held.items()}
    if request.has_idle:
        rest = idle | ({UNUSED: found[UNUSED]} if UNUSED in found else {})
        for name, one in rest.items():
            one.properties = one.properties or AllocationProperties(cluster=cluster)
            written[name] = allocation_of(name, one, window, span, None)
    return dict(sorted(written.items()))


def _share_costs(held: _Set) -> None:
    """Costs of the cluster belong to all allocations, in proportion to what these cost."""
    common = held.get(UNALLOCATED)
    whole = sum((one.total - one.shared for one in held.values()), Decimal(0))
    if common is None or not common.shared or not whole:
        return
    amount, common.shared = common.shared, Decimal(0)
    for one in held.values():
        one.shared += amount * (one.total - one.shared) / whole
    if common.properties is None and not common.total:
        del held[UNALLOCATED]


def _shared_idle(
    held: Mapping[str, AllocationSums], idle: Iterable[AllocationSums], how: IdleShare
) -> dict[str, tuple[Decimal, Decimal, Decimal]]:
    """The part of each allocation of the idle CPUs, GPUs and memory."""
    rest = list(idle)
    found: dict[str, list[Decimal]] = {name: [] for name in held}
    for field in ("cpu", "gpu", "ram"):
        amount = sum((getattr(one, field) for one in rest), Decimal(0))
        whole = sum((getattr(one, field) for one in held.values()), Decimal(0))
        for name, one in held.items():
            # Where no allocation has any of it, all carry the same part.
            is_even = how == "even" or not whole
            found[name].append(amount / len(held) if is_even else amount * getattr(one, field) / whole)
    return {name: (parts[0], parts[1], parts[2]) for name, parts in found.items()}

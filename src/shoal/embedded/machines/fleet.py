"""Builds all machines of a fleet from its entries, with unique, stable names and positions in racks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from shoal.embedded.machines.assembly import machine
from shoal.embedded.machines.fleet_entry import FleetEntry
from shoal.embedded.machines.machine import Machine
from shoal.embedded.machines.machine_topology import place
from shoal.units.errors import UserError, Where

MOST_MACHINES = 100_000


def fleet(entries: Sequence[FleetEntry]) -> tuple[Machine, ...]:
    total = sum(entry.count for entry in entries)
    if total > MOST_MACHINES:
        where = entries[-1].where if entries else Where()
        raise UserError(f"{total} machines", where=where, fix=f"at most {MOST_MACHINES} are simulated")
    return tuple(_machines(entries))


def _machines(entries: Sequence[FleetEntry]) -> Iterator[Machine]:
    names: Counter[str] = Counter()
    rack = -1
    for entry in entries:
        prefix = entry.name or re.sub(r"[^a-z0-9]+", "-", entry.shape.name.lower()).strip("-")
        for number in range(entry.count):
            # Machines of two entries never share a rack.
            rack += number % entry.shape.per_rack == 0
            yield machine(f"{prefix}-{names[prefix]}", entry, place(entry, rack))
            names[prefix] += 1

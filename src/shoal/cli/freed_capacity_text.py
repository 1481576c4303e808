"""Says in an explanation what comes before provisioning, in which order, and why each step does not help."""

from __future__ import annotations

from collections.abc import Collection

from shoal.store.freed_capacity import FreedCapacity


def freeing_lines(freed: FreedCapacity, pods: Collection[str]) -> list[str]:
    """For the first unit that has one of these pods."""
    order = freed.policy.order
    lines = [f"before provisioning: {', '.join(order) or 'nothing is tried'}"]
    for unit, found in freed.outcomes:
        if not set(unit.keys).isdisjoint(pods):
            chosen = None if found.hold is None else found.hold.step
            words = dict(found.notes) if chosen is None else {**found.notes, chosen: "chosen"}
            lines += [f"{step}: {words[step]}" for step in order if step in words]
            break
    return lines

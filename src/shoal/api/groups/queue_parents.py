"""Finds cycles among the parents of queues of Volcano and KAI. No queue of a cycle has a way to a top queue, so no work
of these queues, or of queues below them, can run.
"""

from __future__ import annotations

from collections.abc import Callable


def cycle_above(name: str, parent_of: Callable[[str], str]) -> tuple[str, ...]:
    """The queues of the cycle in which the ancestors of a queue end, child before parent, from the first by name on.
    Empty if they end elsewhere. `parent_of` returns an empty name for a top queue, and for one that does not exist."""
    seen: dict[str, int] = {}
    while name and name not in seen:
        seen[name] = len(seen)
        name = parent_of(name)
    if not name:
        return ()
    cycle = tuple(seen)[seen[name] :]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def cycle_words(cycle: tuple[str, ...]) -> str:
    """`a -> b -> a`: each queue names the next one as its parent."""
    return " -> ".join((*cycle, cycle[0]))

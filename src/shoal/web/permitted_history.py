"""Reduces what a history recorded to what one viewer may see.

Guarantees: of a namespace that the viewer may not list only amounts remain: what was held, when, and of which machine.
Its pods, jobs, gangs, queues, teams and labels have no name any more, so that nothing that is computed from the result
can show one.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from shoal.cost.records import Holder, Holding, Records, Wait
from shoal.web.viewer import OTHERS

Namespaces = frozenset[str] | None
"""Those that a viewer may list; None for all."""
_STRANGER = Holder(OTHERS, OTHERS, OTHERS, "", OTHERS, OTHERS)
_STRANGERS_OVERHEAD = structs.replace(_STRANGER, is_overhead=True)


def permitted_records(records: Records, seen: Namespaces) -> Records:
    if seen is None:
        return records
    holdings = tuple(structs.replace(one, holder=_holder(one.holder, seen)) for one in records.holdings)
    return structs.replace(records, holdings=holdings)


def permitted_waits(waits: Sequence[Wait], seen: Namespaces) -> list[Wait]:
    """Without those of other namespaces: a wait holds nothing that a sum would need."""
    return [one for one in waits if seen is None or one.holder.namespace in seen]


def namespaces_in(holdings: Sequence[Holding], waits: Sequence[Wait]) -> frozenset[str]:
    found = {one.holder.namespace for one in holdings}
    return frozenset(found | {one.holder.namespace for one in waits}) - {""}


def _holder(holder: Holder, seen: frozenset[str]) -> Holder:
    # What a deleted tenant held has no namespace, and no name either.
    if not holder.namespace or holder.namespace in seen:
        return holder
    return _STRANGERS_OVERHEAD if holder.is_overhead else _STRANGER

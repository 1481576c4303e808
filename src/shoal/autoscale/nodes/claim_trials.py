"""Tries whether the claims of several pods can be allocated together on a node that does not exist yet.

The production allocator allocates them one after the other, as the scheduler will. Its search takes long, and a plan
asks for the same pods again and again, so answers are kept: machines whose devices differ in names only share them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]


def _least_devices(charge: Charge) -> int:
    """How many devices the pod's own claims take, whichever they are."""
    contents = [ref.own for ref in charge.ask.claims if ref.own is not None]
    options = [request.options for content in contents for request in content.requests]
    return sum(min((0 if one.admin else one.count or 1 for one in each), default=0) for each in options)


class ClaimTrials:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._alike: dict[int, int] = {}
        """Of each row, the first one with such devices."""
        self._first: dict[str, int] = {}
        self._turn: dict[Charge, int] = {}
        self._held: dict[tuple[int, tuple[Charge, ...]], bool] = {}

    def holding(self, rows: Rows, charges: Sequence[Charge]) -> Flags:
        """The rows on which all claims of these pods can be allocated."""
        for charge in charges:
            self._turn.setdefault(charge, len(self._turn))
        ordered = tuple(sorted((each for each in charges if each.ask.claims), key=self._turn.__getitem__))
        verdicts: dict[int, bool] = {}
        for row in dict.fromkeys(self._like(row) for row in rows.tolist()):
            known = self._held.get((row, ordered))
            if known is None:
                known = self._held[row, ordered] = self._has_held(row, ordered)
            verdicts[row] = known
        return np.fromiter((verdicts[self._alike[row]] for row in rows.tolist()), np.bool_, len(rows))

    def _like(self, row: int) -> int:
        found = self._alike.get(row)
        if found is None:
            dra, name = self._cluster.dra, self._cluster.names[row]
            devices = dra.pools.on(row)
            sets = [sorted(key for key, ids in dra.sets.items() if each.id in ids) for each in devices]
            counters = {each.pool: dra.pools.counters(each.pool) for each in devices}
            text = repr(([each.facts for each in devices], sets, counters)).replace(name, "")
            found = self._alike[row] = self._first.setdefault(text, row)
        return found

    def _has_held(self, row: int, charges: Sequence[Charge]) -> bool:
        dra, within = self._cluster.dra, np.array([row], np.int64)
        devices = dra.pools.on(row)
        least = sum(_least_devices(charge) for charge in charges)
        if least > len(devices) and not any(each.facts.shared for each in devices):
            return False
        taken = []
        for number, charge in enumerate(charges):
            refs = charge.ask.claims
            if dra.blocked(refs) or not dra.reached(refs, within).all() or not dra.served(refs, within).all():
                break
            grants = dra.with_claims(None, refs, row).claims
            taken.append((f"trial/{number}", grants))
            dra.take(f"trial/{number}", row, grants)
        for key, grants in reversed(taken):
            dra.give(key, row, grants)
        return len(taken) == len(charges)

"""One round: whoever waits is tried in order, what fits is placed, what is new and does not fit is told so.

The facts already count the placements when the plan is handed out ("assumed"), so the next round does not give the
same device away again; the world confirms with `PodBound` or takes back with `PodRejected`. Same facts, same seed:
same plan.
"""

from __future__ import annotations

from heapq import heappop, heapreplace

from shoal.engine.cluster import Cluster
from shoal.engine.draw import draw
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Intention, Place, Plan, Refuse
from shoal.engine.reasons import Code


def cycle(cluster: Cluster, placement: Placement, *, now_s: float, seed: int) -> Plan:
    """Decide for all waiting pods."""
    version = cluster.version
    ledger = Ledger(cluster)
    pending = cluster.pending
    fresh = pending.take_fresh()
    placement.renew()
    intentions: list[Intention] = []
    at_random = placement.profile.at_random
    heads = pending.heads()
    while heads:
        _, _, key, charge = heads[0]
        spot = placement.spot(charge, draw(seed, key) if at_random else 0)
        if spot is None:
            # Nobody behind it asks for less, and nothing is freed within a round: the whole line waits.
            heappop(heads)
            continue
        row, grant = spot
        ledger.place(key, row, grant)
        intentions.append(Place(key, cluster.names[row], grant))
        head = pending.head(charge)
        if head is None:
            heappop(heads)
        else:
            heapreplace(heads, (*head, charge))
    code = Code.NOWHERE if cluster.row_of else Code.NO_NODES
    intentions.extend(Refuse(key, code) for key in fresh if key in pending)
    ledger.commit()
    return Plan(now_s, version, tuple(intentions))

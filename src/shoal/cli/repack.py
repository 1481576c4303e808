"""Compares placements of a cluster's own pods under several policies, for `shoal pack -f` and `shoal pack --live`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from shoal.api.node import Node
from shoal.cli.named_nodes import EXAMPLE
from shoal.cli.object_source import Source
from shoal.cli.progress import progress
from shoal.engine.cluster import Cluster
from shoal.engine.profile import POLICIES, Builder
from shoal.sim.repacking import PlacedFleet, as_placed, fleet_of, repacked, with_clones
from shoal.store.held_pods import pods_of
from shoal.store.inventory import Inventory
from shoal.units.errors import UserError
from shoal.views.repacking import AS_PLACED, Comparison, Prices, RepackedRow, conclusion, has_gpus, prices_of, row_of
from shoal.views.top import NodeTop, all_requests, top_of

_FULL_MILLI = 1000


def compare_placements(
    source: Source, policies: Sequence[str], profiles: Mapping[str, Builder], seed: int, load: float | None
) -> Comparison:
    """`profiles`: builders of names that are not Shoal's. `load`: the GPU request to reach by clones of pods."""
    loaded = source.taken()
    nodes = [placed.value for placed in Inventory(source.documents).of(Node)]
    fleet = fleet_of(loaded.manifests.events, loaded.now_s)
    _require(fleet, nodes)
    labels = {node.metadata.name: node.metadata.labels for node in nodes}
    top = _nodes_of(as_placed(fleet), nodes)
    prices = prices_of({node.name: labels[node.name] for node in top if has_gpus(node)})
    row = partial(_row, nodes=nodes, prices=prices)
    now = row(AS_PLACED, as_placed(fleet))
    pods = fleet.pods
    if load is not None:
        fleet = with_clones(fleet, load, now.gpus * _FULL_MILLI, seed)
        now = row(AS_PLACED, as_placed(fleet))
    builders = {name: POLICIES.get(name) or profiles[name] for name in policies}
    rows, arriving = [now], len(fleet.running) + len(fleet.waiting)
    with progress(list(builders), arriving) as watch:
        for name, builder in builders.items():
            rows.append(row(name, repacked(fleet, builder, seed)))
            watch(name, arriving)
    return Comparison(pods, fleet.clones, len(pods_of(loaded.manifests.gated, ())), rows, conclusion(rows, prices))


def _row(policy: str, cluster: Cluster, *, nodes: Sequence[Node], prices: Prices) -> RepackedRow:
    return row_of(policy, cluster, _nodes_of(cluster, nodes), prices)


def _nodes_of(cluster: Cluster, nodes: Sequence[Node]) -> list[NodeTop]:
    """Fragmentation is measured by all pods, so that the rows can be compared."""
    return top_of(cluster, nodes, str, typical=all_requests(cluster)).nodes


def _require(fleet: PlacedFleet, nodes: Sequence[Node]) -> None:
    if not nodes:
        raise UserError("no nodes", fix=f"add the nodes of a cluster, or name machines, for example {EXAMPLE}")
    if not fleet.pods:
        raise UserError("no pods to place")

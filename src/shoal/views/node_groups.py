"""Sums nodes that are alike: of one pool, instance type and way of buying, with their GPUs, what is held, and price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

import msgspec

from shoal.cost.prices.machine_prices import MachinePrices, UnknownPrice
from shoal.cost.records import Machine
from shoal.views.dashboard.facts import Tile


class NodeGroup(msgspec.Struct, frozen=True):
    pool: str
    """Empty where no label of the nodes names one."""
    instance_type: str
    capacity: str
    region: str
    model: str
    nodes: int
    not_ready: int
    gpus: int
    held: float
    broken: int
    per_hour: Decimal | None
    """Of all its nodes; None where the price of one is not known."""
    asked: str = ""
    """What has to be written in the price file, where a price is missing."""

    @property
    def free(self) -> float:
        return max(0.0, self.gpus - self.held - self.broken)


def node_groups(
    machines: Iterable[Machine], tiles: Iterable[Tile], prices: MachinePrices, now_ms: int
) -> list[NodeGroup]:
    """By pool and instance type. Nodes without GPUs are included: they cost as well."""
    tile_of = {tile.node.name: tile for tile in tiles}
    curves = prices.curves()
    asked = {_key_of_price(one): one.asked() for one in prices.unknown}
    members: dict[tuple[str, str, str, str, str], list[Machine]] = {}
    for machine in machines:
        key = (machine.pool, machine.instance_type, machine.capacity, machine.region, machine.model)
        members.setdefault(key, []).append(machine)
    found = []
    for (pool, instance_type, capacity, region, model), nodes in sorted(members.items()):
        tiles_here = [tile_of[one.name] for one in nodes if one.name in tile_of]
        missing = [one for one in nodes if one.name not in curves]
        found.append(
            NodeGroup(
                pool=pool,
                instance_type=instance_type,
                capacity=capacity,
                region=region,
                model=model,
                nodes=len(nodes),
                not_ready=sum(not tile.node.is_ready for tile in tiles_here),
                gpus=sum(tile.node.gpus for tile in tiles_here),
                held=sum(tile.held for tile in tiles_here),
                broken=sum(len(tile.node.broken) for tile in tiles_here),
                per_hour=None if missing else sum((curves[one.name].rate(now_ms) for one in nodes), Decimal(0)),
                asked=_asked(missing, asked),
            )
        )
    return found


def _asked(missing: Iterable[Machine], asked: Mapping[tuple[str, bool], str]) -> str:
    found = (asked.get((one.instance_type or one.name, one.capacity == "spot"), "") for one in missing)
    return next((one for one in found if one), "")


def _key_of_price(one: UnknownPrice) -> tuple[str, bool]:
    return one.instance_type or one.machine, one.is_spot

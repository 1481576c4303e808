"""Maps the resources of pods to those that quota counts: excluded resources, and resources that are transformed.

The configuration's order is kept: what is excluded is gone before anything is exchanged, and what comes of an exchange
is not exchanged again. Amounts are multiplied as whole units, a part of a core counting as a core, and sums are rounded
up once, per pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.api.kueue.configuration import Transformation
from shoal.api.resources import CPU
from shoal.engine.queues.facts import Amounts
from shoal.units.quantity import NANO, NANO_PER_MILLI


class Transformed(msgspec.Struct, frozen=True):
    """What one unit of a resource represents."""

    keeps_input: bool
    outputs: tuple[tuple[str, int], ...]
    """(resource, billionths per unit)"""
    times: str = ""
    """Another resource of the pod, by whose amount the input is multiplied: memory per GPU times GPUs."""


class ResourceMapping(msgspec.Struct, frozen=True):
    """The configuration's exclusions and exchanges."""

    excluded: tuple[str, ...] = ()
    """Beginnings of names."""
    exchanges: dict[str, Transformed] = {}

    @classmethod
    def of(cls, excluded: Iterable[str], transformations: Iterable[Transformation]) -> ResourceMapping:
        exchanges = {
            each.input: Transformed(
                keeps_input=each.strategy == "Retain",
                outputs=tuple((name, quantity.nano) for name, quantity in sorted(each.outputs.items())),
                times=each.multiply_by,
            )
            for each in transformations
        }
        return cls(tuple(excluded), exchanges)

    def charge(self, asked: Mapping[str, int]) -> Amounts:
        """What quota is charged for a pod that asks for so much."""
        counted = {name: amount for name, amount in asked.items() if not name.startswith(self.excluded)}
        if self.exchanges.keys().isdisjoint(counted):
            return counted
        charged: Amounts = {}
        nano: dict[str, int] = {}
        for name, amount in counted.items():
            exchange = self.exchanges.get(name)
            if exchange is None or exchange.keeps_input:
                charged[name] = amount
            if exchange is not None:
                units = _whole(name, amount) * _whole(exchange.times, counted.get(exchange.times, 1))
                for output, each in exchange.outputs:
                    nano[output] = nano.get(output, 0) + units * each
        for name, total in nano.items():
            charged[name] = charged.get(name, 0) + _up(total, NANO_PER_MILLI if name == CPU else NANO)
        return charged


def _whole(name: str, amount: int) -> int:
    return _up(amount, 1000) if name == CPU else amount


def _up(amount: int, unit: int) -> int:
    return -(-amount // unit)

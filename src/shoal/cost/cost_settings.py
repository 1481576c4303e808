"""The prices with which a process that runs all the time computes costs."""

from __future__ import annotations

import msgspec

from shoal.cost.prices.price_file import PriceFile
from shoal.cost.weights import WeightMode
from shoal.units.errors import Where


class CostSettings(msgspec.Struct, frozen=True):
    file: PriceFile = PriceFile()
    where: Where = Where(path="--prices")
    """The price file, for what is asked."""
    mode: WeightMode = "model"
    cluster: str = "default-cluster"
    """The name of the cluster in answers."""

"""Orders GPU models by what one GPU costs, for rules that should not use a dear GPU where a cheap one will do.

The price of a model is the lowest list price per GPU of an instance that has it. A model that no price list has costs
as much as its memory bandwidth suggests, at the median price of bandwidth over the models with a price. A GPU whose
model is unknown costs as much as its memory suggests, computed alike, or the median of all models if nothing is known.

Rules get the position of the price among the prices of all models: it is a small whole number, and it depends on the
facts that ship with the product, not on the nodes of a cluster.
"""

from __future__ import annotations

from bisect import bisect_left
from decimal import Decimal
from functools import cache
from statistics import median

from shoal.data.gpus import Model, models, read_product
from shoal.data.instances import catalog, find_instance

_MIB_PER_GB = Decimal(10**9) / 2**20


def usd_of_model(model: Model) -> Decimal:
    """The price of one GPU for an hour: listed, or estimated from the bandwidth."""
    listed = _listed().get(model.name)
    return _bandwidth(model) * _usd_per_bandwidth() if listed is None else listed


def usd_of_gpu(product: str = "", instance_type: str = "", memory_mib: int = 0) -> Decimal:
    """The price of one GPU for an hour by what a node says of it; what is unknown may be left out."""
    model = read_product(product).model if product else None
    if model is None and (instance := find_instance(instance_type)) is not None:
        model = instance.model()
    if model is not None:
        return usd_of_model(model)
    if memory_mib > 0:
        return memory_mib / _MIB_PER_GB * _usd_per_gb()
    return _middle()


def price_level(usd: Decimal) -> int:
    """1 for the lowest price of a model, one more for each other price of a model below `usd`."""
    return bisect_left(_prices(), usd) + 1


def highest_price_level() -> int:
    """The level of what costs more than any model."""
    return len(_prices()) + 1


@cache
def _listed() -> dict[str, Decimal]:
    lowest: dict[str, Decimal] = {}
    for instance in catalog().instances:
        model, usd = instance.model(), instance.usd_per_gpu()
        if model is not None and usd is not None:
            lowest[model.name] = min(usd, lowest.get(model.name, usd))
    return lowest


@cache
def _usd_per_bandwidth() -> Decimal:
    return median(_listed()[model.name] / _bandwidth(model) for model in models() if model.name in _listed())


@cache
def _usd_per_gb() -> Decimal:
    return median(_listed()[model.name] / model.memory_gb for model in models() if model.name in _listed())


@cache
def _prices() -> tuple[Decimal, ...]:
    return tuple(sorted({usd_of_model(model) for model in models()}))


@cache
def _middle() -> Decimal:
    return median(usd_of_model(model) for model in models())


def _bandwidth(model: Model) -> Decimal:
    return Decimal(str(model.bandwidth_gb_s))

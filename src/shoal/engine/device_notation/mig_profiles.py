"""Finds requests for impossible MIG profiles: invalid names, and profiles that no GPU in the cluster supports.

A valid profile that no GPU is currently partitioned into is no mistake; the pod waits with that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shoal.data.gpus import read_product
from shoal.data.mig import Layout, layout_of_product, layouts
from shoal.engine.device_demand import Demand, MigTiles
from shoal.engine.device_notation.names import MIG_PREFIX
from shoal.units.errors import UserError, Where, excerpt

_MOST_TOLD = 12


def tiles_fault(demand: Demand | None, products: Iterable[str], where: Callable[[str], Where]) -> UserError | None:
    """What is wrong with the profiles of a demand, given the product labels of all nodes with GPUs.

    `where` finds the place at which a resource is asked for.
    """
    if not isinstance(demand, MigTiles):
        return None
    present = tuple(products)
    faults = (profile_fault(name, present, where(MIG_PREFIX + name)) for name, _ in demand.tiles)
    return next((fault for fault in faults if fault is not None), None)


def profile_fault(profile: str, products: Iterable[str], where: Where) -> UserError | None:
    """Why no GPU among the products can give such an instance, or None when one can, or may."""
    if not any(one.profile(profile) for one in layouts()):
        return UserError(f"{excerpt(profile)} is not a MIG profile of any GPU", where=where, fix=_known_to(layouts()))
    names = sorted({read_product(product).name for product in products if product})
    if not names:
        return None
    present = {name: layout_of_product(name) for name in names}
    unknown = [name for name, one in present.items() if one is None and read_product(name).model is None]
    if unknown or any(one is not None and one.profile(profile) for one in present.values()):
        return None
    found = [one for one in present.values() if one is not None]
    fix = _known_to(found) if found else "none of them can be cut into instances"
    return UserError(
        f"no GPU present has the MIG profile {excerpt(profile)} ({', '.join(names)})", where=where, fix=fix
    )


def _known_to(found: Iterable[Layout]) -> str:
    names = list(dict.fromkeys(p.name.replace("+", ".") for one in found for p in one.profiles))
    more = ", ..." if len(names) > _MOST_TOLD else ""
    return f"there are {', '.join(names[:_MOST_TOLD])}{more}"

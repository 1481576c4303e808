"""Checks requests and limits as the API server does, with its messages and field paths.

Devices cannot be shared by asking for half of one, so extended resources are whole numbers with the limit
equal to the request: `nvidia.com/gpu: 500m` is refused here, and a fraction has to be asked for in the ways
the product offers. One bound is ours: an amount above 2^53 is refused as a slip of the keyboard, which also
keeps every sum over a fleet inside 64 bits and every score exact in floating point.
"""

from __future__ import annotations

from shoal.api.container import Resources
from shoal.api.names import label_key_fault
from shoal.api.pod import PodSpec
from shoal.api.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    can_overcommit,
    is_extended,
    is_pod_level,
)
from shoal.api.wire import Quantities
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.quantity import NANO, Quantity

ABSURD = Quantity.of(2**53)
ABSURD_MILLI = Quantity.of_milli(2**53)

_CONTAINER_RESOURCES = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_HALVES_OF_A_DEVICE = "devices and other extended resources are counted in whole numbers"


def check_pod_resources(spec: PodSpec, where: Where) -> None:
    for field_name, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            if not container.resources.limits and not container.resources.requests:
                continue
            _check_resources(container.resources, where.below(f"{field_name}[{index}].resources"))
    if spec.resources is not None:
        _check_pod_level(spec.resources, where.below("resources"))
    for name, quantity in spec.overhead.items():
        check_amount(name, quantity, where.below("overhead"))


def check_amounts(quantities: Quantities, where: Where) -> None:
    """A node's capacity, a quota: any resource, but no amount below zero or beyond belief."""
    for name, quantity in quantities.items():
        check_amount(name, quantity, where)


def check_amount(name: str, quantity: Quantity, where: Where) -> None:
    """One entry of the list at `where`."""
    if quantity.nano < 0:
        raise _invalid(quantity, "must be greater than or equal to 0", where.key(name))
    if quantity.nano > (ABSURD_MILLI if name == CPU else ABSURD).nano:
        raise _invalid(quantity, "is absurdly large", where.key(name))
    # The API server stores thousandths, so anything finer than those is rounded up before this is asked.
    if quantity.nano % NANO and is_extended(name) and quantity.milli_value() % 1000:
        raise _invalid(quantity, "must be an integer", where.key(name), _HALVES_OF_A_DEVICE)


def _check_resources(resources: Resources, where: Where) -> None:
    for limits_or_requests in ("limits", "requests"):
        here = where.below(limits_or_requests)
        for name, quantity in getattr(resources, limits_or_requests).items():
            _check_container_name(name, here)
            check_amount(name, quantity, here)
    _check_pairs(resources, where)
    names = {*resources.limits, *resources.requests}
    if any(name.startswith(HUGEPAGES_PREFIX) for name in names) and not names & {CPU, MEMORY}:
        raise UserError("HugePages require cpu or memory", where=where)


def _check_pod_level(resources: Resources, where: Where) -> None:
    for limits_or_requests in ("limits", "requests"):
        here = where.below(limits_or_requests)
        for name, quantity in getattr(resources, limits_or_requests).items():
            if not is_pod_level(name):
                raise UserError(
                    f"{excerpt(name)} is not a resource of the pod as a whole",
                    where=here.key(name),
                    fix="cpu, memory and hugepages-* are; ask for others in a container",
                )
            check_amount(name, quantity, here)
    _check_pairs(resources, where)


def _check_pairs(resources: Resources, where: Where) -> None:
    here = where.below("requests")
    for name, request in resources.requests.items():
        limit = resources.limits.get(name)
        if limit is None:
            if not can_overcommit(name):
                raise UserError(
                    "Limit must be set for non overcommitable resources",
                    where=where.below("limits").key(name),
                    fix=f"set it to {request}, like the request",
                )
        elif request != limit and not can_overcommit(name):
            raise _invalid(request, f"must be equal to {name} limit of {limit}", here)
        elif request > limit:
            raise _invalid(request, f"must be less than or equal to {name} limit of {limit}", here)


def _check_container_name(name: str, where: Where) -> None:
    if name in _CONTAINER_RESOURCES:
        return
    if fault := label_key_fault(name):
        raise UserError(f"{excerpt(name)} is not a resource name: {fault}", where=where)
    if "/" not in name and not name.startswith(HUGEPAGES_PREFIX):
        raise UserError(
            f'Invalid value: "{name}": must be a standard resource for containers or fully qualified',
            where=where.key(name),
            fix=f"e.g. nvidia.com/{name}" if name in {"gpu", "gpus"} else "e.g. cpu, memory, nvidia.com/gpu",
        )


def _invalid(quantity: Quantity, why: str, where: Where, fix: str = "") -> UserError:
    return UserError(f'Invalid value: "{quantity}": {why}', where=where, fix=fix)

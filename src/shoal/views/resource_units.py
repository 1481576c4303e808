"""Formats resources with familiar names and units: GPUs, cores, GiB.

The value stays a number without its unit, so that a column of a table is aligned and its name has the unit.
"""

from __future__ import annotations

from collections.abc import Iterable

_GIB = 1 << 30
_TITLES = {
    "cpu": "cores",
    "memory": "GiB memory",
    "ephemeral-storage": "GiB storage",
    "nvidia.com/gpu": "GPUs",
    "shoal.dev/gpu-milli": "GPU equivalents",
}
_ORDER = ("nvidia.com/gpu", "shoal.dev/gpu-milli")


def title(resource: str) -> str:
    if resource in _TITLES:
        return _TITLES[resource]
    return f"GiB {resource}" if resource.startswith("hugepages-") else resource


def figure(resource: str, amount: float) -> str:
    """An amount (cores, bytes or pieces) in the unit of the title, as short as it is exact enough."""
    if title(resource).startswith("GiB"):
        amount /= _GIB
    elif resource == "shoal.dev/gpu-milli":
        amount /= 1000
    text = f"{amount:,.3f}" if abs(amount) < 10 else f"{amount:,.1f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def words(resource: str, amount: float) -> str:
    """`4 GPUs`, `256 GiB memory`, `1 core`."""
    shown = figure(resource, amount)
    name = title(resource)
    return f"{shown} {name.removesuffix('s') if shown == '1' and resource in _TITLES else name}"


def in_order(resources: Iterable[str]) -> list[str]:
    """What is scarce comes first: GPUs, other devices, then cores and memory."""
    return sorted(resources, key=_rank)


def _rank(resource: str) -> tuple[int, str]:
    if resource in _ORDER:
        return _ORDER.index(resource), resource
    if resource == "cpu":
        return 20, resource
    return (21 if title(resource).startswith("GiB") else 10), resource

"""Computes how the GPUs of a node are connected: the labels for the scheduler, and the number of links of a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shoal.data.gpus import Model
from shoal.devices.names import ISLAND_SIZE, NVLINK

_LINKS = {"nvlink2": 6, "nvlink3": 12, "nvlink4": 18, "nvlink5": 18}


def nvlink_labels(islands: Sequence[int]) -> Mapping[str, str]:
    """Labels that users select nodes by and that NVIDIA's discovery does not set: whether GPUs are connected by NVLink,
    and how many.
    """
    sizes = {*Counter(islands).values()}
    found = {NVLINK: "true" if max(sizes) > 1 else "false"}
    if len(sizes) == 1 and max(sizes) > 1:
        found[ISLAND_SIZE] = str(max(sizes))
    return found


def links_of(model: Model | None) -> int:
    """The number of NVLinks of a GPU; zero without any."""
    return _LINKS.get(model.link[:7], 0) if model is not None else 0

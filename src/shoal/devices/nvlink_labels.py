"""Computes the labels by which the scheduler learns how the GPUs of a node are connected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shoal.devices.names import ISLAND_SIZE, NVLINK


def nvlink_labels(islands: Sequence[int]) -> Mapping[str, str]:
    """Labels that users select nodes by and that NVIDIA's discovery does not set: whether GPUs are connected by NVLink,
    and how many.
    """
    sizes = {*Counter(islands).values()}
    found = {NVLINK: "true" if max(sizes) > 1 else "false"}
    if len(sizes) == 1 and max(sizes) > 1:
        found[ISLAND_SIZE] = str(max(sizes))
    return found

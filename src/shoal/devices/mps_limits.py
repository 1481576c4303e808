"""The greatest number of MPS clients of a GPU, as the device plugin counts them."""

from __future__ import annotations

from shoal.data.gpus import Model

MOST_MPS_CLIENTS, MOST_OLD_MPS_CLIENTS = 48, 16


def most_mps_clients(model: Model) -> int:
    """Of one GPU, as the device plugin counts them: it takes GPUs below compute capability 7.5 for old ones."""
    return MOST_MPS_CLIENTS if _compute(model.compute_capability) >= (7, 5) else MOST_OLD_MPS_CLIENTS


def _compute(capability: str) -> tuple[int, int]:
    major, _, minor = capability.partition(".")
    return int(major), int(minor or 0)

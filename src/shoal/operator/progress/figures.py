"""Counts what the GPU operator does, for its metrics."""

from __future__ import annotations

import msgspec

READY, NOT_READY, WITHOUT_POLICY = 1, 0, -1
"""The values of the metric of the state, as NVIDIA's operator has them."""


class OperatorFigures(msgspec.Struct):
    gpu_nodes: int = 0
    state: int = WITHOUT_POLICY
    passes: int = 0
    failed: int = 0
    succeeded_at_s: float = 0.0
    """When the policy was found ready last; 0: never."""
    has_labels: bool = False
    """Whether nodes have labels of node feature discovery."""

"""Names the annotations by which a workload says that it saves its work, when it did so last, and how often."""

from __future__ import annotations

from collections.abc import Container

CHECKPOINT_ANNOTATION = "shoal.dev/last-checkpoint"
"""When the pod's work was last saved, as RFC 3339: what is lost if it is stopped is counted from there."""
CHECKPOINT_EVERY_ANNOTATION = "shoal.dev/checkpoint-every"
"""How often it saves, as a duration such as `10m`."""
_KEYS = (CHECKPOINT_ANNOTATION, CHECKPOINT_EVERY_ANNOTATION, "shoal.dev/checkpoint", "shoal.dev/checkpoints")


def tells_checkpoints(keys: Container[str]) -> bool:
    """Whether one of these annotations, or labels, says that checkpoints are written."""
    return any(key in keys for key in _KEYS)

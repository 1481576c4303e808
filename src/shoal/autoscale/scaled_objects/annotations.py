"""Reads the annotations with which a person pauses the scaling of a ScaledObject or forces its activation."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.units.errors import UserError

_PREFIX = "autoscaling.keda.sh/"
PAUSED = f"{_PREFIX}paused"
PAUSED_REPLICAS = f"{_PREFIX}paused-replicas"
PAUSED_SCALE_IN = f"{_PREFIX}paused-scale-in"
PAUSED_SCALE_OUT = f"{_PREFIX}paused-scale-out"
FORCE_ACTIVATION = f"{_PREFIX}force-activation"
TRANSFER_OWNERSHIP = "scaledobject.keda.sh/transfer-hpa-ownership"
OWNERSHIP_CHECK = "validations.keda.sh/hpa-ownership"

_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})

Annotations = Mapping[str, str]


def has_paused_annotation(annotations: Annotations) -> bool:
    return PAUSED in annotations or PAUSED_REPLICAS in annotations


def is_paused(annotations: Annotations) -> bool:
    """A number of replicas pauses, whatever `paused` says."""
    return PAUSED_REPLICAS in annotations or _is_on(annotations, PAUSED)


def is_scale_in_paused(annotations: Annotations) -> bool:
    return _is_on(annotations, PAUSED_SCALE_IN)


def is_scale_out_paused(annotations: Annotations) -> bool:
    return _is_on(annotations, PAUSED_SCALE_OUT)


def is_activation_forced(annotations: Annotations) -> bool:
    return _is_on(annotations, FORCE_ACTIVATION)


def paused_replicas(annotations: Annotations) -> int | None:
    """The size at which the target is paused."""
    written = annotations.get(PAUSED_REPLICAS)
    if written is None:
        return None
    try:
        count = int(written)
    except ValueError:
        count = -1
    if not 0 <= count < 2**31:
        raise UserError(f"annotation {PAUSED_REPLICAS}: {written!r} is not a number of replicas", fix='write e.g. "3"')
    return count


def _is_on(annotations: Annotations, name: str) -> bool:
    """A value that is neither true nor false counts as true: the annotation was set on purpose."""
    return name in annotations and annotations[name] not in _FALSE

"""The values of one pass over an autoscaler: what it reads, what it decides, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, structs

from shoal.api.conditions import Condition
from shoal.api.pod import Pod
from shoal.api.selectors import Selector
from shoal.autoscale.replicas.history import AutoscalerHistory
from shoal.autoscale.replicas.samples import MetricReading
from shoal.autoscale.replicas.spec import AutoscalerStatus

ABLE_TO_SCALE = "AbleToScale"
SCALING_ACTIVE = "ScalingActive"
SCALING_LIMITED = "ScalingLimited"
SCALED_TO_ZERO = "ScaledToZero"
NORMAL, WARNING = "Normal", "Warning"


class ScaleTarget(Struct, frozen=True):
    """What the scale subresource of the target says."""

    replicas: int
    reported: int
    """The replica count in its status."""
    selector: str = ""


class TargetFacts(Struct, frozen=True):
    """What a pass reads besides the autoscaler."""

    target: ScaleTarget
    pods: Sequence[Pod] = ()
    """The pods of the namespace."""
    readings: Sequence[MetricReading] = ()
    """One for each metric of the spec."""
    others: Mapping[str, Selector] = {}
    """The selectors of the other autoscalers of the namespace, by name."""


class AutoscalerEvent(Struct, frozen=True):
    kind: str
    reason: str
    message: str


class Computation(Struct, frozen=True):
    """What came of one metric."""

    type: str
    action: str
    error: str


class ScaleDecision(Struct, frozen=True):
    status: AutoscalerStatus
    history: AutoscalerHistory
    current: int = 0
    desired: int = 0
    rescales: bool = False
    rescale_reason: str = ""
    events: tuple[AutoscalerEvent, ...] = ()
    computations: tuple[Computation, ...] = ()
    error: str = ""
    is_spec_error: bool = False
    metrics: tuple[dict[str, Any], ...] | None = None
    has_failed: bool = False
    """Whether the pass ends without a size."""


class PassResult(Struct, frozen=True):
    status: AutoscalerStatus
    history: AutoscalerHistory
    events: tuple[AutoscalerEvent, ...]
    action: str = "none"
    error: str = ""
    is_spec_error: bool = False
    rescaled: bool = False


def with_condition(status: AutoscalerStatus, name: str, says: tuple[bool, str, str], now: datetime) -> AutoscalerStatus:
    """`says`: status, reason and message. The transition time changes with the status only."""
    is_so, reason, message = says
    word = "True" if is_so else "False"
    kept = list(status.conditions)
    place = next((place for place, one in enumerate(kept) if one.type == name), None)
    since = kept[place].last_transition_time if place is not None and kept[place].status == word else now
    new = Condition(name, word, reason, message, since)
    if place is None:
        kept.append(new)
    else:
        kept[place] = new
    return structs.replace(status, conditions=tuple(kept))

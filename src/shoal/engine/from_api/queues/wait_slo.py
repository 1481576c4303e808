"""Reads how long workloads of a queue may wait for quota: the annotation `shoal.dev/wait-slo` of a ClusterQueue.

It is a goal for pages, metrics and alerts. No decision depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.units.durations import WITH_DAYS, DurationError, nanoseconds
from shoal.units.errors import excerpt

WAIT_SLO_ANNOTATION = "shoal.dev/wait-slo"
USUAL_WAIT_SLO_S = 1800.0


class WaitSlo(msgspec.Struct, frozen=True):
    """95 of 100 workloads get quota within this time."""

    seconds: float = USUAL_WAIT_SLO_S
    fault: str = ""
    """What is wrong with the annotation, where the usual time counts instead of it."""


def wait_slo_of(annotations: Mapping[str, str]) -> WaitSlo:
    text = annotations.get(WAIT_SLO_ANNOTATION)
    if text is None:
        return WaitSlo()
    try:
        seconds = nanoseconds(text, WITH_DAYS) / 10**9
    except DurationError:
        seconds = 0.0
    if seconds <= 0:
        return WaitSlo(fault=f"{WAIT_SLO_ANNOTATION}: {excerpt(text)} is not a time span; write e.g. 30m or 2h")
    return WaitSlo(seconds)

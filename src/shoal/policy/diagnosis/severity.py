"""Orders the causes of one diagnosis: the more severe first, and no cause that another cause explains.

`critical`: hardware is broken or lost, or work was lost. `error`: something has to be changed or repaired. `warning`:
the work waits for what others hold, or runs with less than it could have.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from shoal.policy.diagnosis.log_reading import is_hardware
from shoal.policy.diagnosis.verdicts import (
    CauseSeverity,
    DiagnosisResult,
    FoundCause,
    NotRun,
    RuledOut,
    Verdict,
)

_XID: Final = "Xid"
_CRITICAL: Final = frozenset(
    {
        "NodeNotReady",
        "NodesNotReady",
        "AllGpusUnhealthy",
        "GpuUnhealthy",
        "JobLostWithNode",
        "NodeLost",
        "NodeShutdown",
        "GpuAccessLost",
    }
)
_WARNINGS: Final = frozenset(
    {
        "GpusInUse",
        "QuotaInUse",
        "AutoscalerLimitReached",
        "NoCloudCapacity",
        "PoolTaintNotTolerated",
        "NoMatchingPool",
        "FeatureDiscoveryMissing",
        "GpusAcrossSockets",
        "DevicesNotAligned",
        "ThermalThrottling",
        "IdleGpu",
        "CpuBottleneck",
        "OversizedGpu",
        "SmallBatch",
        "NcclOverSockets",
    }
)
_RANKS: Final[dict[str, int]] = {"critical": 0, "error": 1, "warning": 2}
_EXPLAINED: Final[dict[str, frozenset[str]]] = {
    "AllGpusUnhealthy": frozenset({_XID}),
    "ClusterQueueInactive": frozenset({"FlavorMissing", "QueueStopped"}),
}
"""A cause, and the causes of the same subject that say why it is so."""


def severity_of(identifier: str) -> CauseSeverity:
    number = _xid_number(identifier)
    if identifier in _CRITICAL or (number is not None and is_hardware(number)):
        return "critical"
    return "warning" if identifier in _WARNINGS else "error"


def result_of(subject: str, verdicts: Iterable[Verdict]) -> DiagnosisResult:
    """Each verdict once."""
    found = list(dict.fromkeys(verdicts))
    return DiagnosisResult(
        subject,
        in_order(each for each in found if isinstance(each, FoundCause)),
        tuple(each for each in found if isinstance(each, RuledOut)),
        tuple(each for each in found if isinstance(each, NotRun)),
    )


def in_order(causes: Iterable[FoundCause]) -> tuple[FoundCause, ...]:
    """With their severities; of one severity in the order of the checks."""
    found = list(causes)
    kinds: dict[str, set[str]] = {}
    for cause in found:
        kinds.setdefault(cause.subject, set()).add(_kind(cause.id))
    kept = [cause for cause in found if not _EXPLAINED.get(cause.id, frozenset()) & kinds[cause.subject]]
    rated = [msgspec.structs.replace(cause, severity=severity_of(cause.id)) for cause in kept]
    return tuple(sorted(rated, key=lambda cause: _RANKS[cause.severity]))


def _kind(identifier: str) -> str:
    return identifier if _xid_number(identifier) is None else _XID


def _xid_number(identifier: str) -> int | None:
    digits = identifier.removeprefix(_XID)
    return int(digits) if digits != identifier and digits.isdecimal() else None

"""Cases about the division of one resource among sibling queues."""

from __future__ import annotations

from typing import Any

from shoal.engine.queues.disciplines.kai.division import UNITS, Division, ShareRequest, divide, divide_over_quota

_SCALES = {"gpu": 1000, "cpu": 1, "memory": 1}
"""Cases count whole GPUs, and the others in the engine's units."""


def differences(case: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    """The queues of a case are listed oldest first."""
    resource = case["resource"]
    scale = _SCALES[resource]
    queues = sorted(case["queues"], key=lambda queue: queue.get("created_order", 0))
    division = _division(case, [_request(queue, scale) for queue in queues], UNITS[resource], scale)
    found = []
    for queue, wanted in expect.get("fairShare", {}).items():
        got = division.shares[queue] / scale
        if got != wanted:
            found.append(f"fair share of {queue}: expected {wanted}, got {got:g}")
    if "remaining" in expect and division.left / scale != expect["remaining"]:
        found.append(f"remaining: expected {expect['remaining']}, got {division.left / scale:g}")
    return found


def _division(case: dict[str, Any], queues: list[ShareRequest], unit: int, scale: int) -> Division:
    total, k = round(case["total"] * scale), float((case.get("config") or {}).get("usagePenaltyK", 0))
    if case.get("phase") != "overquota-only":
        return divide(total, queues, unit=unit, k=k)
    granted = {queue["name"]: round(queue.get("alreadyGranted", 0) * scale) for queue in case["queues"]}
    return divide_over_quota(total, queues, granted, unit=unit, k=k)


def _request(queue: dict[str, Any], scale: int) -> ShareRequest:
    return ShareRequest(
        queue["name"],
        round(queue.get("requested", 0) * scale),
        _amount(queue.get("quota", 0), scale),
        _amount(queue.get("limit", 0), scale),
        float(queue.get("overQuotaWeight", 0)),
        int(queue.get("priority", 100)),
        float(queue.get("historicalUsage", 0)),
    )


def _amount(value: float, scale: int) -> int | None:
    return None if value == -1 else round(value * scale)

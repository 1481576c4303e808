"""Reads the query of a request to `/allocation`, as OpenCost defines it.

Unknown parameters are ignored, as OpenCost does; a value that is wrong is refused. Properties that Shoal does not
record (services, annotations) are refused by name, so that no tool shows them as empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Literal

import msgspec

from shoal.units.calendar_windows import HOUR_MS, TimeWindow, day_starts, window_of, without_future
from shoal.units.durations import WITH_DAYS, DurationError, nanoseconds
from shoal.units.errors import UserError, Where, excerpt

Property = str
"""A name of PROPERTIES, of OWNERS, or `label:KEY`."""
PROPERTIES = (
    "cluster",
    "node",
    "namespace",
    "controllerKind",
    "controller",
    "pod",
    "container",
    "team",
    "queue",
    "gang",
    "model",
)
OWNERS = ("deployment", "statefulset", "daemonset", "job")
"""The controller, where it is of this kind."""
EACH_POD = ("cluster", "node", "namespace", "pod", "container")
LABEL = "label:"
_STEPS = {"hour": HOUR_MS, "day": 24 * HOUR_MS, "week": 7 * 24 * HOUR_MS}
_MOST_STEPS = 1_000
_YES, _NO = ("true", "1"), ("false", "0", "")
IdleShare = Literal["", "weighted", "even"]


class AllocationRequest(msgspec.Struct, frozen=True):
    window: TimeWindow
    steps: tuple[int, ...]
    """When each set begins; the first is the begin of the window."""
    aggregate: tuple[Property, ...] = EACH_POD
    accumulates: bool = False
    """One set for the whole window."""
    has_idle: bool = False
    shares_idle: IdleShare = ""
    idle_by_node: bool = False


def read_request(query: Mapping[str, str], now_ms: int, end_ms: int | None = None) -> AllocationRequest:
    """`end_ms`: where the future begins, which has no costs. Raises UserError for a wrong or missing parameter."""
    if not query.get("window", "").strip():
        raise UserError("is missing", where=Where(path="window"), fix="write window=7d")
    where = Where(path="window")
    window = window_of(query["window"], now_ms, UTC, where)
    if end_ms is not None:
        window = without_future(window, end_ms, where)
    shares = query.get("shareIdle", "")
    shared: IdleShare = "weighted" if shares in ("true", "1", "weighted") else ""
    if shares == "even":
        shared = "even"
    elif not shared and shares not in _NO:
        raise UserError(f"{excerpt(shares)} is none", where=Where(path="shareIdle"), fix="write true, false or even")
    return AllocationRequest(
        window=window,
        steps=_steps(query.get("step", ""), window),
        aggregate=_aggregate(query.get("aggregate", "")),
        accumulates=_is_true(query, "accumulate"),
        # Without idle time there is nothing to share.
        has_idle=_is_true(query, "includeIdle") or bool(shared),
        shares_idle=shared,
        idle_by_node=_is_true(query, "idleByNode"),
    )


def _steps(text: str, window: TimeWindow) -> tuple[int, ...]:
    if not text or text == "window":
        return (window.start_ms,)
    if text in ("day", "1d"):
        return tuple(start for start, _ in day_starts(window, UTC))
    try:
        length = _STEPS.get(text) or nanoseconds(text, WITH_DAYS) // 10**6
    except DurationError:
        length = 0
    if length < 60_000 or window.length_ms > length * _MOST_STEPS:
        fix = f"write hour, day, week or a duration (1h, 1d) with at most {_MOST_STEPS} of them in the window"
        raise UserError(f"{excerpt(text)} is no step", where=Where(path="step"), fix=fix)
    return tuple(range(window.start_ms, window.end_ms, length))


def _aggregate(text: str) -> tuple[Property, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name in PROPERTIES or name in OWNERS or (name.startswith(LABEL) and len(name) > len(LABEL)):
            continue
        fix = f"write some of {', '.join((*PROPERTIES, *OWNERS))}, label:KEY"
        raise UserError(f"{excerpt(name)} is no property of an allocation", where=Where(path="aggregate"), fix=fix)
    return names or EACH_POD


def _is_true(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name, "").lower()
    if value in _YES:
        return True
    if value in _NO:
        return False
    raise UserError(f"{excerpt(value)} is neither true nor false", where=Where(path=name))

"""Shares of GPUs by other measures than those that were recorded: MIG by compute, sharing by use.

    mig_by     memory: by memory slices, as it was recorded; compute: by compute slices
    share_by   replica: as it was recorded; use: what several pods hold of a GPU together is divided by their use

Sharing by use changes nothing of what all of them pay, and nothing where the use of one of them is unknown or none of
them does anything. A holding whose share changes becomes several, one after the other. Use is compared hour by hour, so
that a month is the sum of its days.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from shoal.cost.prices.price_file import PriceFile
from shoal.cost.records import FULL_SHARE, DeviceShare, Holding, Records, Use
from shoal.units.calendar_windows import HOUR_MS, TimeWindow

_LATEST = 1 << 62


class _Sharer(NamedTuple):
    at: int
    """Its place among the holdings."""
    held: Holding
    share: int
    uses: Sequence[Use]
    """In order of time."""

    @property
    def end_ms(self) -> int:
        return _LATEST if self.held.end_ms is None else self.held.end_ms


_Times = dict[tuple[int, str], list[tuple[int, int]]]
"""By holding and device: moments, and the share from then on."""


def moments_of_use(file: PriceFile, window: TimeWindow, days: Sequence[int] = ()) -> Sequence[int]:
    """At which moments records of use are divided; at `days` where shares do not depend on use."""
    if file.share_by != "use":
        return days
    return sorted({*range(window.start_ms // HOUR_MS * HOUR_MS, window.end_ms, HOUR_MS), *days})


def with_share_basis(records: Records, file: PriceFile) -> Records:
    """As the price file wants it; the same records where it wants what was recorded."""
    holdings: Sequence[Holding] = records.holdings
    if file.mig_by == "compute":
        holdings = [_by_compute(one) for one in holdings]
    if file.share_by == "use":
        holdings = _by_use(holdings)
    return records if holdings is records.holdings else msgspec.structs.replace(records, holdings=tuple(holdings))


def _by_compute(held: Holding) -> Holding:
    if not any(one.compute for one in held.devices):
        return held
    devices = tuple(msgspec.structs.replace(one, share=one.compute) if one.compute else one for one in held.devices)
    return msgspec.structs.replace(held, devices=devices)


def _by_use(holdings: Sequence[Holding]) -> list[Holding]:
    by_device: dict[tuple[str, str], list[_Sharer]] = {}
    for at, held in enumerate(holdings):
        uses = sorted(held.uses, key=_start)
        for one in held.devices:
            if one.share < FULL_SHARE and not one.compute:
                by_device.setdefault((held.machine, one.device), []).append(_Sharer(at, held, one.share, uses))
    times: _Times = {}
    for (_, device), sharers in by_device.items():
        if len(sharers) > 1:
            _divide(device, sharers, times)
    devices: dict[int, dict[str, list[tuple[int, int]]]] = {}
    for (at, device), found in times.items():
        devices.setdefault(at, {})[device] = found
    return [piece for at, held in enumerate(holdings) for piece in _pieces(held, devices.get(at, {}))]


def _divide(device: str, sharers: Sequence[_Sharer], times: _Times) -> None:
    cuts = {moment for one in sharers for moment in (one.held.start_ms, one.end_ms)}
    for one in sharers:
        cuts.update(moment for use in one.uses for moment in (use.start_ms, use.end_ms))
    ordered = sorted(cuts)
    began = sorted(sharers, key=lambda one: one.held.start_ms)
    upcoming, active = 0, list[_Sharer]()
    for start, _ in pairwise(ordered):
        active = [one for one in active if one.end_ms > start]
        while upcoming < len(began) and began[upcoming].held.start_ms <= start:
            active.append(began[upcoming])
            upcoming += 1
        for one, share in zip(active, _shares(active, start), strict=True):
            known = times.setdefault((one.at, device), [])
            if not known or known[-1][1] != share:
                known.append((start, share))


def _shares(active: Sequence[_Sharer], at_ms: int) -> list[int]:
    used = [_used(one.uses, at_ms) for one in active]
    total = sum(one for one in used if one is not None)
    if len(active) < 2 or None in used or not total:
        return [one.share for one in active]
    whole = sum(one.share for one in active)
    found = [whole * (one or 0) // total for one in used]
    found[-1] += whole - sum(found)
    return found


def _used(uses: Sequence[Use], at_ms: int) -> int | None:
    at = bisect_right(uses, at_ms, key=_start) - 1
    return uses[at].used_ppm if at >= 0 and at_ms < uses[at].end_ms else None


def _start(use: Use) -> int:
    return use.start_ms


def _pieces(held: Holding, times: Mapping[str, Sequence[tuple[int, int]]]) -> Iterable[Holding]:
    starts = sorted({held.start_ms, *(at for found in times.values() for at, _ in found)})
    if not times:
        return [held]
    ends: list[int | None] = [*starts[1:], held.end_ms]
    return [
        msgspec.structs.replace(
            held, start_ms=start, end_ms=end, devices=tuple(_at(one, times, start) for one in held.devices)
        )
        for start, end in zip(starts, ends, strict=True)
    ]


def _at(one: DeviceShare, times: Mapping[str, Sequence[tuple[int, int]]], at_ms: int) -> DeviceShare:
    found = times.get(one.device, ())
    at = bisect_right(found, (at_ms, _LATEST)) - 1
    return msgspec.structs.replace(one, share=found[at][1]) if at >= 0 else one

"""Finds the first claim request of a pod that a node cannot satisfy, and by how much."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.dra.offers import has_capacity, is_tainted, matching, share_of
from shoal.engine.dra.requests import ClaimAsk, ClaimRef, Option, Request
from shoal.engine.dra.search import MOST_STEPS, find
from shoal.engine.dra_allocator import Allocator, Refs

_LONGEST_NAME = 160


def lack(allocator: Allocator, refs: Refs, row: int) -> str:
    """In words for people; empty when nothing is lacking."""
    finding = allocator.finding(refs, row)
    if finding.picks is not None:
        return ""
    if finding.gave_up:
        return f"its claims: the search for devices was given up after {MOST_STEPS:,} attempts"
    stock = allocator.stock(row)
    wanting = allocator.unallocated(refs)
    for ref, content in wanting:
        for request in content.requests:
            if find([ClaimAsk((request,))], stock).picks is None:
                return _request(allocator, ref, request, row)
    for ref, content in wanting:
        if find([content], stock).picks is None:
            what = "constraints" if content.constraints else "requests"
            return f"claim {ref.name}: no choice of devices here meets all its {what}"
    return "its claims together: each could be served without the others"


def devices_near(
    allocator: Allocator, refs: Refs, rows: NDArray[np.int64]
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """How many devices the claims ask for, and how many of them each row could give now and were nothing taken.

    Requests are counted one by one and by their first way: enough to tell which of two nodes is nearer.
    """
    requests = [request for _, content in allocator.unallocated(refs) for request in content.requests]
    asked = sum(request.options[0].count or 1 for request in requests)
    free, total = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for place, row in enumerate(rows.tolist()):
        for request in requests:
            option = request.options[0]
            here, left = _counts(allocator, option, row)
            if option.count is None:
                here, left = min(here, 1), int(bool(here) and left == here)
            free[place] += min(left, option.count or 1)
            total[place] += min(here, option.count or 1)
    return asked, free, total


def _request(allocator: Allocator, ref: ClaimRef, request: Request, row: int) -> str:
    what = f"request {request.name} of claim {ref.name}"
    if len(request.options) > 1:
        return f"{what}: none of its {len(request.options)} alternatives can be had here"
    option = request.options[0]
    here, free = _counts(allocator, option, row)
    if option.count is None and here and allocator.pools.is_unfinished(row):
        return f"{what}: it asks for all of {_short(option.matching)} while a pool is being published"
    asked = "all" if option.count is None else str(option.count)
    return f"{what}: it asks for {asked} of {_short(option.matching)} where {here} match and {free} can be had"


def _counts(allocator: Allocator, option: Option, row: int) -> tuple[int, int]:
    """Devices of the node that match, and those that could be given out now."""
    devices = matching(allocator.pools.on(row), allocator.sets.get(option.matching, frozenset()))
    free = 0
    for device in devices:
        share = share_of(device, option)
        if share is None or is_tainted(device, option):
            continue
        left = allocator.usage.counters_left(device.pool)
        drawn = all(
            left.get((each.counter_set, counter), 0) >= amount
            for each in device.facts.consumes
            for counter, amount in each.counters
        )
        taken = allocator.usage.shares(device.id)
        free += option.admin or (has_capacity(device, share, taken) and (drawn or bool(taken)))
    return len(devices), free


def _short(name: str) -> str:
    """Sets are named by what selects them, which may be a page of text."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 3] + "..."

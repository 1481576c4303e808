"""Determines which GPUs of a node are close together: by NVLink first, then by NUMA node.

A set that fits into one group takes the smallest that holds it, so that large groups stay whole for large asks; one
that does not takes the largest groups, which makes for the fewest. Inside the last group the next level decides. A set
that fits into no island but into one NUMA node stays on that node.
Rejected: scores per pair of links, as the device plugin computes them: exponential, and equal on every switched board.
"""

from __future__ import annotations

from collections.abc import Sequence

Labels = Sequence[int]


def closest(free: Sequence[int], count: int, levels: Sequence[Labels]) -> tuple[int, ...]:
    """`count` of the free devices (there are enough), grouped as closely as the levels allow."""
    if not levels or count >= len(free):
        return tuple(sorted(free)[:count])
    if len(levels) > 1 and _largest(free, levels[0]) < count <= _largest(free, levels[1]):
        levels = (levels[1], levels[0], *levels[2:])
    groups = grouped(free, levels[0])
    holding = [group for group in groups if len(group) >= count]
    if not holding:
        largest = max(groups, key=lambda group: (len(group), -group[0]))
        rest = [device for device in free if device not in largest]
        return tuple(sorted((*largest, *closest(rest, count - len(largest), levels))))
    size = min(len(group) for group in holding)
    choices = [closest(group, count, levels[1:]) for group in holding if len(group) == size]
    return min(choices, key=lambda chosen: ([spread(chosen, labels) for labels in levels[1:]], chosen))


def grouped(devices: Sequence[int], labels: Labels) -> list[list[int]]:
    """Devices by label; those of which nothing is known are one group each."""
    groups: dict[tuple[int, int], list[int]] = {}
    for device in sorted(devices):
        known = device < len(labels) and labels[device] >= 0
        groups.setdefault((labels[device], -1) if known else (-1, device), []).append(device)
    return list(groups.values())


def spread(devices: Sequence[int], labels: Labels) -> int:
    """Over how many groups the devices are spread."""
    return len(grouped(devices, labels))


def _largest(devices: Sequence[int], labels: Labels) -> int:
    return max(len(group) for group in grouped(devices, labels))

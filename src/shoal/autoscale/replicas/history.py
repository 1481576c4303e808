"""What an autoscaler remembers between passes: recommendations and sizes that it has set.

Both lists are reused: a new entry takes the slot of the last one that nothing needs any more, so that a list is never
longer than the windows require. An entry that is exactly as old as a window is outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct, structs

from shoal.autoscale.replicas.spec import Behavior, ScalingRules

_Entry = TypeVar("_Entry")


class Recommendation(Struct, frozen=True):
    replicas: int
    at_s: float


class ScaleEvent(Struct, frozen=True):
    change: int
    """The number of replicas that were added or removed; never negative."""
    at_s: float


class AutoscalerHistory(Struct, frozen=True):
    recommendations: tuple[Recommendation, ...] | None = None
    """`None`: the autoscaler has not been seen before."""
    ups: tuple[ScaleEvent, ...] = ()
    downs: tuple[ScaleEvent, ...] = ()


def first_seen(history: AutoscalerHistory, replicas: int, now_s: float) -> AutoscalerHistory:
    """An autoscaler that has not been seen starts with its current size as the recommendation of this moment."""
    if history.recommendations is not None:
        return history
    return structs.replace(history, recommendations=(Recommendation(replicas, now_s),))


def with_recommendation(
    kept: tuple[Recommendation, ...], replicas: int, window_s: float, now_s: float
) -> tuple[Recommendation, ...]:
    new = Recommendation(replicas, now_s)
    return _replaced(kept, new, [one.at_s <= now_s - window_s for one in kept])


def change_within(events: Iterable[ScaleEvent], period_s: float, now_s: float) -> int:
    return sum(event.change for event in events if event.at_s > now_s - period_s)


def with_event(
    kept: tuple[ScaleEvent, ...], rules: ScalingRules | None, change: int, now_s: float
) -> tuple[ScaleEvent, ...]:
    """Without rules nothing is kept, because nothing would read it."""
    if rules is None:
        return kept
    longest_s = max((policy.period_seconds for policy in rules.policies), default=0)
    return _replaced(kept, ScaleEvent(change, now_s), [one.at_s <= now_s - longest_s for one in kept])


def with_rescale(
    history: AutoscalerHistory, behavior: Behavior | None, sizes: tuple[int, int], now_s: float
) -> AutoscalerHistory:
    """`sizes`: before and after."""
    before, after = sizes
    if behavior is None:
        return history
    if after > before:
        return structs.replace(history, ups=with_event(history.ups, behavior.scale_up, after - before, now_s))
    return structs.replace(history, downs=with_event(history.downs, behavior.scale_down, before - after, now_s))


def _replaced(kept: tuple[_Entry, ...], new: _Entry, is_outdated: list[bool]) -> tuple[_Entry, ...]:
    if not any(is_outdated):
        return (*kept, new)
    slot = max(place for place, outdated in enumerate(is_outdated) if outdated)
    return (*kept[:slot], new, *kept[slot + 1 :])

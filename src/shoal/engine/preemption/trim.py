"""Removes needless victims: from a sufficient set, those that are not needed are spared, the most expensive first."""

from __future__ import annotations

from collections.abc import Callable, Collection

from shoal.engine.preemption.victims import Victims

_BY_HALVES = 64


Hope = Callable[[list[int]], bool]


def trim(
    victims: Victims, proves: Callable[[], bool], fixed: Collection[int] = (), may_spare: Hope = lambda _: True
) -> None:
    """Spare what the claimant fits without. More room never does harm, so each part needs to be tried only once.

    `may_spare` saves trials: it may err on the side of yes.
    """
    parts = victims.parts(index for index in victims.chosen if index not in fixed)
    if len(parts) > _BY_HALVES:
        _halve(victims, parts, proves)
        return
    for part in parts:
        if may_spare(part):
            victims.spare(part)
            if not proves():
                victims.take(part)
                if victims.is_elastic(part):
                    _loosen(victims, part, proves)


def _loosen(victims: Victims, part: list[int], proves: Callable[[], bool]) -> None:
    """A gang that goes whole may turn out to be needed for no more than it can spare."""
    spared = []
    for index in part:
        victims.spare([index])
        if proves():
            spared.append(index)
        else:
            victims.take([index])
    if not victims.suits([index for index in part if index not in spared]):
        victims.take(spared)


def _halve(victims: Victims, parts: list[list[int]], proves: Callable[[], bool]) -> None:
    """As above, for many victims of which few are needed."""
    every_index = [index for part in parts for index in part]
    victims.spare(every_index)
    if proves():
        return
    victims.take(every_index)
    if len(parts) > 1:
        half = len(parts) // 2
        _halve(victims, parts[:half], proves)
        _halve(victims, parts[half:], proves)

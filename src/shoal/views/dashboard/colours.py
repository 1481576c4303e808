"""A colour per team, the same as long as the dashboard is open: in the order in which teams appear, then again."""

from __future__ import annotations

FREE = "grey42"
BROKEN = "red1"
AWAY = "grey50"
_COLOURS = (
    "cornflower_blue",
    "orange1",
    "medium_spring_green",
    "orchid",
    "gold1",
    "turquoise2",
    "salmon1",
    "chartreuse3",
    "medium_purple1",
    "deep_sky_blue1",
)


class Colours:
    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    def of(self, owner: str) -> str:
        if not owner:
            return FREE
        return self._given.setdefault(owner, _COLOURS[len(self._given) % len(_COLOURS)])

    def given(self) -> tuple[str, ...]:
        """In the order in which teams appeared."""
        return tuple(self._given.values())

    def owners(self) -> tuple[str, ...]:
        """All teams that have appeared."""
        return tuple(self._given)

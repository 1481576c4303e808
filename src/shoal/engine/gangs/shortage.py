"""Determines of what a gang with too few pods lacks some: of pods at all, of a role, or of a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from shoal.engine.gangs.next_pods import missing_of
from shoal.engine.gangs.teams import Roster, Team


class Shortage(msgspec.Struct, frozen=True):
    """Fewer pods exist than are needed."""

    needs: int
    exist: int
    part: str = ""
    """Empty: the gang itself."""
    role: str = ""


def shortage_of(roster: Roster) -> Shortage:
    """The first that is short. `roster`: of a gang for which `next_pods.minimum` is None."""
    exist = len(roster.waiting) + len(roster.running)
    if exist < roster.facts.minimum:
        return Shortage(roster.facts.minimum, exist)
    there = Counter(map(roster.role_of, [*roster.waiting, *roster.running]))
    for role, least in roster.facts.roles:
        if there[role] < least:
            return Shortage(least, there[role], role=role)
    team = next((team for team in leaves_of(roster.root) if missing_of(roster, team) is None), roster.root)
    return Shortage(team.least, len(team.waiting) + len(team.running), part=team.name)


def leaves_of(team: Team) -> Iterator[Team]:
    """The parts below it that have no parts of their own."""
    for part in team.parts:
        yield from leaves_of(part) if part.parts else (part,)

"""Selects the next pods of a gang to place: first all that it needs to run, later one unit at a time.

What is wanted is a tree like the gang's own, with the pods to place at its leaves, because every part may wish to stay
together. Which pods is decided by order, except that roles which are short come first; where a part is one of several
that would do, the others are spares. One thing more is a pod of a part that has what it needs, or all that an
optional part needs: half of a part is of no use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shoal.engine.gangs.teams import Roster, Team
from shoal.engine.groups import TopologyRequirement


@dataclass(slots=True)
class GangDemand:
    """So many of these pods, the first in preference."""

    pods: list[str]
    need: int


@dataclass(slots=True)
class PodsToPlace:
    """What is to be placed of a team, and how close together."""

    name: str
    requirement: TopologyRequirement
    running: list[str]
    """Pods of the team that run: where they are decides where the others may go."""
    demands: list[GangDemand] = field(default_factory=list)
    parts: list[PodsToPlace] = field(default_factory=list)
    least: int = 0
    """How many of the parts must be placed, the first in preference."""
    was_on: list[str] = field(default_factory=list)
    """Nodes where the team ran before, the latest first: if none of it runs, it returns there if it can."""

    @property
    def at_most(self) -> int:
        """Pods needed if every part is placed."""
        return self._own + sum(part.at_most for part in self.parts)

    @property
    def at_least(self) -> int:
        """Pods needed if no more parts are placed than must be, the first in preference."""
        return self._own + sum(part.at_least for part in self.parts[: self.least])

    @property
    def _own(self) -> int:
        return sum(demand.need for demand in self.demands)

    def all_pods(self) -> Iterator[str]:
        """Every pod that may be placed."""
        for demand in self.demands:
            yield from demand.pods
        for part in self.parts:
            yield from part.all_pods()


def minimum(roster: Roster) -> PodsToPlace | None:
    """All that a gang lacks to run; None when too few pods exist."""
    return _Choice(roster).minimum()


def missing_of(roster: Roster, part: Team) -> PodsToPlace | None:
    """All that one part lacks; None when too few pods exist."""
    choice = _Choice(roster)
    return choice.want(part) if choice.bring_up(part) else None


def one_more(roster: Roster) -> Iterator[PodsToPlace]:
    """What could be added to a gang that runs, in the order in which it is tried."""
    tried: set[int] = set()
    for pod in list(roster.waiting):
        team = roster.team_of(pod)
        unmet = _outermost_unmet(roster, team)
        if unmet is None:
            yield _single(pod, team)
        elif id(unmet) not in tried:
            tried.add(id(unmet))
            choice = _Choice(roster)
            if choice.bring_up(unmet):
                yield choice.want(roster.root)


def _single(pod: str, team: Team) -> PodsToPlace:
    """One pod, inside the wishes of all the parts around it."""
    want = PodsToPlace(team.name, team.requirement, _if_bound(team), [GangDemand([pod], 1)], was_on=team.was_on)
    around = team.parent
    while around is not None:
        if want.requirement.is_empty:
            want.name, want.requirement, want.running = around.name, around.requirement, _if_bound(around)
            want.was_on = around.was_on
        elif not around.requirement.is_empty:
            want = PodsToPlace(
                around.name, around.requirement, _if_bound(around), parts=[want], least=1, was_on=around.was_on
            )
        around = around.parent
    return want


def _if_bound(team: Team) -> list[str]:
    """Its running pods, where they matter: they decide where the others go."""
    return [] if team.requirement.is_empty else list(team.all_running())


def _outermost_unmet(roster: Roster, team: Team) -> Team | None:
    """The largest part around a pod that lacks something to run."""
    found = None
    while team is not roster.root:
        if not team.is_met:
            found = team
        team = team.parent or roster.root
    return found


def _waiting(team: Team) -> Iterator[str]:
    yield from team.waiting
    for part in team.parts:
        yield from _waiting(part)


class _Choice:
    """Pods and parts chosen so far."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._chosen: dict[str, None] = {}
        self._spares: dict[int, list[Team]] = {}
        """By part: its parts that would do instead of others."""

    def minimum(self) -> PodsToPlace | None:
        roster = self._roster
        short = dict(roster.missing_roles())
        for pod in roster.waiting:
            role = roster.role_of(pod)
            if short.get(role, 0) > 0:
                short[role] -= 1
                self.add(pod)
        if any(short.values()):
            return None
        if roster.root.parts and not self.bring_up(roster.root):
            return None
        for team in {id(team): team for team in map(roster.team_of, self._chosen)}.values():
            # A pod that a role needs may belong to a part which is of no use with that pod alone.
            unmet = _outermost_unmet(roster, team)
            if unmet is not None and not self.bring_up(unmet):
                return None
        for pod in roster.waiting:
            if len(self._chosen) >= roster.missing_pods:
                break
            unmet = _outermost_unmet(roster, roster.team_of(pod))
            if unmet is None or self.bring_up(unmet):
                self.add(pod)
        return self.want(roster.root) if len(self._chosen) >= roster.missing_pods else None

    def add(self, pod: str) -> None:
        self._chosen[pod] = None

    def bring_up(self, team: Team) -> bool:
        """Choose what a part lacks; without a trace when too few pods exist."""
        before = dict(self._chosen)
        if not team.parts:
            missing = team.least - len(team.running) - sum(pod in self._chosen for pod in team.waiting)
            others = [pod for pod in team.waiting if pod not in self._chosen]
            if missing > len(others):
                return False
            self._chosen.update(dict.fromkeys(others[: max(missing, 0)]))
            return True
        missing = team.least - sum(part.is_met for part in team.parts)
        spares = []
        for part in sorted((part for part in team.parts if not part.is_met), key=self._begun_first):
            if missing <= 0:
                spares.append(part)
            elif self.bring_up(part):
                missing -= 1
        if missing > 0:
            self._chosen = before
            return False
        self._spares[id(team)] = spares
        return True

    def want(self, team: Team) -> PodsToPlace:
        """What was chosen of a team, as a tree."""
        want = PodsToPlace(team.name, team.requirement, _if_bound(team), self._demands(team), was_on=team.was_on)
        # A part that was chosen later, for the minimum of the whole, does not stand by any more.
        spares = [part for part in self._spares.get(id(team), []) if self._chosen.keys().isdisjoint(_waiting(part))]
        for part in team.parts:
            below = self.want(part)
            if not below.demands and not below.parts:
                continue
            if below.requirement.is_empty and not spares and below.least == len(below.parts):
                # Nothing keeps its pods together: they are placed with those of the whole.
                want.demands += below.demands
                want.parts += below.parts
            else:
                want.parts.append(below)
        want.least = len(want.parts)
        for part in spares:
            standby = _Choice(self._roster)
            if standby.bring_up(part):
                want.parts.append(standby.want(part))
        return want

    def _demands(self, team: Team) -> list[GangDemand]:
        """The chosen pods of a team, and who could replace them: those of the same role, where roles count."""
        roles = {role for role, _ in self._roster.facts.roles}
        by_role: dict[str, list[str]] = {}
        for pod in team.waiting:
            role = self._roster.role_of(pod)
            by_role.setdefault(role if role in roles else "", []).append(pod)
        demands = []
        for pods in by_role.values():
            chosen = [pod for pod in pods if pod in self._chosen]
            if chosen:
                others = [pod for pod in pods if pod not in self._chosen]
                demands.append(GangDemand(chosen + others, len(chosen)))
        return demands

    def _begun_first(self, part: Team) -> tuple[bool, bool]:
        """Parts that run in part, and those that are needed anyway, before others."""
        return not any(True for _ in part.all_running()), not any(pod in self._chosen for pod in part.waiting)

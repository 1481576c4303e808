"""Represents a gang as a tree of teams with their pods: which run, which wait, and whether each team has what it needs.

Pods that are being terminated count for nothing here: they still hold their devices, but the gang will be without them.
A pod that names an undeclared part belongs to the gang itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shoal.engine.cluster import Cluster
from shoal.engine.gang_members import Gang
from shoal.engine.groups import GroupFacts, TopologyRequirement
from shoal.engine.pod_identity import PodIdentity


@dataclass(slots=True, eq=False)
class Team:
    """A gang or one of its parts. A part with parts of its own counts them, any other counts pods."""

    name: str
    requirement: TopologyRequirement
    least: int
    parent: Team | None = None
    parts: list[Team] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    """In the order in which they are tried."""
    running: list[str] = field(default_factory=list)
    was_on: list[str] = field(default_factory=list)
    """Nodes that pods of it, or of its parts, leave or have left, the latest first."""

    @property
    def is_met(self) -> bool:
        """Whether it has what it needs."""
        if self.parts:
            return sum(part.is_met for part in self.parts) >= self.least
        return len(self.running) >= self.least

    def all_running(self) -> Iterator[str]:
        """Also those of the parts."""
        yield from self.running
        for part in self.parts:
            yield from part.all_running()


class Roster:
    """All teams of a gang and the pods in them, as of now."""

    __slots__ = ("_role_of", "_team_of", "_teams", "facts", "root", "running", "waiting")

    def __init__(
        self, facts: GroupFacts, waiting: Mapping[str, PodIdentity], running: Mapping[str, PodIdentity]
    ) -> None:
        """`waiting`: in the order in which the pods are tried."""
        self.facts = facts
        self.root = Team("", facts.requirement, 0)
        teams = {part.name: Team(part.name, part.requirement, part.minimum, self.root) for part in facts.parts}
        for part in facts.parts:
            teams[part.name].parent = parent = teams.get(part.parent, self.root)
            parent.parts.append(teams[part.name])
        least = facts.parts_minimum
        self.root.least = len(self.root.parts) if least is None else least
        self.waiting = dict.fromkeys(waiting)
        """All waiting pods, in the order in which they are tried."""
        self.running = list(running)
        self._teams = teams
        self._team_of: dict[str, Team] = {}
        self._role_of: dict[str, str] = {}
        for pod, who in waiting.items():
            self._sort_in(pod, who).waiting.append(pod)
        for pod, who in running.items():
            self._sort_in(pod, who).running.append(pod)

    @classmethod
    def of_gang(cls, cluster: Cluster, gang: Gang, facts: GroupFacts) -> Roster:
        """The pods of a gang of the cluster, and the nodes that it left."""
        pending, pods = cluster.pending, cluster.pods
        waiting = {pod: pending[pod] for pod in gang.waiting}
        in_turn = sorted(waiting, key=lambda pod: waiting[pod].order_in_gang)
        running = {pod: pods[pod].who for pod in gang.running if pod not in cluster.terminating}
        roster = cls(facts, {pod: waiting[pod].who for pod in in_turn}, running)
        for pod in sorted(pod for pod in gang.running if pod in cluster.terminating):
            roster._note_nodes(pods[pod].who.part, [cluster.names[pods[pod].row]])
        for name, nodes in reversed(gang.was_on.items()):
            roster._note_nodes(name, list(reversed(nodes)))
        return roster

    @property
    def is_met(self) -> bool:
        """Whether the gang has all it needs to run."""
        return self.missing_pods <= 0 and (not self.root.parts or self.root.is_met) and not self.missing_roles()

    @property
    def missing_pods(self) -> int:
        """How many pods it is short of, whatever their parts and roles."""
        return self.facts.minimum - len(self.running)

    @property
    def has_surplus(self) -> bool:
        """Whether more runs than is needed."""
        if not self.is_met:
            return False
        needed = sum(_needed(part) for part in self.root.parts)
        return len(self.running) > max(self.facts.minimum, sum(least for _, least in self.facts.roles), needed)

    def missing_roles(self) -> dict[str, int]:
        """Role -> pods it is short of."""
        there = Counter(self._role_of[pod] for pod in self.running)
        return {role: least - there[role] for role, least in self.facts.roles if least > there[role]}

    def team_of(self, pod: str) -> Team:
        return self._team_of[pod]

    def role_of(self, pod: str) -> str:
        return self._role_of[pod]

    def started(self, pods: list[str]) -> None:
        """Waiting pods were placed."""
        for pod in pods:
            del self.waiting[pod]
            self.running.append(pod)
            team = self._team_of[pod]
            team.waiting.remove(pod)
            team.running.append(pod)

    def _note_nodes(self, part: str, nodes: list[str]) -> None:
        team: Team | None = self._teams.get(part, self.root)
        while team is not None:
            team.was_on += nodes
            team = team.parent

    def _sort_in(self, pod: str, who: PodIdentity) -> Team:
        team = self._team_of[pod] = self._teams.get(who.part, self.root)
        self._role_of[pod] = who.role
        return team


def _needed(team: Team) -> int:
    """The fewest pods with which a team that has what it needs would still have it."""
    if not team.parts:
        return team.least
    return sum(sorted(_needed(part) for part in team.parts)[: team.least])

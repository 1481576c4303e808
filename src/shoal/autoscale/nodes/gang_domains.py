"""Chooses the topology domains of gangs that have to be in one, as far as the whole plan gets cheaper by it.

A gang is planned in the domain in which its own nodes cost least. What other pods of the plan need can make another
domain cheaper: a node that they share, or a larger node instead of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.nodes.pod_variants import VariantChoice
from shoal.autoscale.requirements import RequirementSet

Domains = Mapping[str, str]
"""The value of the label, by gang."""
ChoiceKey = tuple[int, int, str, int]
"""The number of a shape, of its variant, the domain, and the number of the choice."""


class PlanOfDomains(NamedTuple):
    """A plan, and the domains in which it has its gangs."""

    plan: NodePlan
    domains: Domains


class DomainChoices:
    """What pods require in one domain: the same object for equal pods, so that groups of them have one price."""

    def __init__(self) -> None:
        self._known: dict[ChoiceKey, VariantChoice] = {}

    def of(self, choice: VariantChoice, within: RequirementSet, key: ChoiceKey) -> VariantChoice:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = choice.within(within)
        return found


def with_cheaper_domains(
    start: PlanOfDomains,
    values: Callable[[str], Sequence[str]],
    attempt: Callable[[Domains], NodePlan],
    most: int,
) -> NodePlan:
    """The plan with gangs in other domains: all in one, then one after the other.

    `values`: of a gang; `most`: attempts.
    """
    best, domains = start
    shared = sorted({value for gang in domains for value in values(gang)}) if len(domains) > 1 else []
    moves: list[Domains] = [{gang: value for gang in domains if value in values(gang)} for value in shared]
    moves += [{gang: value} for gang in domains for value in values(gang)]
    for move in moves[:most]:
        tried = {**domains, **move}
        if tried != domains:
            plan = attempt(tried)
            if plan.cost < best.cost:
                best, domains = plan, tried
    return best

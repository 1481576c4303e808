"""KAI's queues as facts of the one quota tree: parents are cohorts, leaves are cluster queues.

A quota is what a leaf has of its own; what it has beyond is borrowed, from what others leave unused and from what the
cluster has beside all quotas, and weights say who borrows more. Two rules have no like among borrowing and lending, and
are quotas of their own, under names of their own:

- a limit holds for all that is below a queue: `<resource>/limit`, of which nobody owns any and each may borrow so much;
- work that is never ended stays within quota at every level above it: `<resource>/fixed`, the same way.

A priority is a weight, too. Beyond quotas KAI serves queues of one parent by priority, and only among equals by weight:
each step of priority makes a weight a million times as heavy, so that whoever is higher has the smaller share whatever
both hold.

Rejected: limits as bounds of borrowing of the resource itself. A parent's limit below what its children own together
could not be said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from shoal.api.selectors import Selector
from shoal.controllers.kai.sights import RESOURCES, Queue, path_up
from shoal.engine.queues.facts import (
    Amounts,
    ClusterQueueFacts,
    CohortFacts,
    FlavorFacts,
    FlavorQuotas,
    LocalQueueFacts,
    PreemptionRules,
    Quota,
    ResourceGroup,
)
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact

FLAVOR = "kai"
ROOT = "/"
"""The cohort of all; no queue can be called so."""
LIMIT, FIXED = "/limit", "/fixed"
KINDS = tuple(f"{name}{kind}" for name in RESOURCES for kind in ("", LIMIT, FIXED))
_ENDLESS = 1 << 60
_STEP, _MOST_STEPS = 1e6, 40
_RULES = PreemptionRules(within="LowerPriority", reclaim="Any")

SETTINGS = Settings(fair_sharing=True, respect_budgets=True)
"""Work that is never ended says so by a budget that allows nothing."""


def charged(amounts: Amounts, *, is_fixed: bool) -> Amounts:
    """What work of these amounts is counted as."""
    found = {name: amounts.get(name, 0) for name in RESOURCES}
    found |= {f"{name}{LIMIT}": amounts.get(name, 0) for name in RESOURCES}
    return found | {f"{name}{FIXED}": amounts.get(name, 0) if is_fixed else 0 for name in RESOURCES}


def door_of(queue: str) -> str:
    """The local queue that leads to it."""
    return f"{FLAVOR}/{queue}"


def facts_of(queues: Mapping[str, Queue], capacity: Amounts) -> list[Fact]:
    """`capacity` is what all nodes have. A queue whose parent is not there takes no part."""
    children: dict[str, list[Queue]] = {}
    for queue in queues.values():
        children.setdefault(queue.spec.parent_queue, []).append(queue)
    found: list[Fact] = [FlavorFacts(FLAVOR)]
    owned = {name: _owned(children.get("", ()), name) for name in RESOURCES}
    endless = Quota(_ENDLESS)
    left = {
        name: {"": Quota(max(0, capacity.get(name, 0) - owned[name])), LIMIT: endless, FIXED: endless}
        for name in RESOURCES
    }
    found.append(CohortFacts(ROOT, groups=_group(left)))
    steps = {name: _steps(siblings) for name, siblings in children.items()}
    for queue in queues.values():
        weight = _weight(queue) * _STEP ** steps[queue.spec.parent_queue][queue.spec.priority]
        above = queue.spec.parent_queue or ROOT
        if above != ROOT and above not in queues:
            continue
        below = children.get(queue.name, ())
        if below:
            parts = {name: _of_queue(queue, name, _owned(below, name)) for name in RESOURCES}
            found.append(CohortFacts(queue.name, above, _group(parts), weight))
        else:
            parts = {name: _of_queue(queue, name, 0) for name in RESOURCES}
            found.append(
                ClusterQueueFacts(
                    queue.name,
                    above,
                    _group(parts),
                    namespaces=Selector.EVERYTHING,
                    preemption=_rules(queue, queues),
                    weight=weight,
                )
            )
            found.append(LocalQueueFacts(door_of(queue.name), queue.name))
    return found


def _of_queue(queue: Queue, resource: str, below: int) -> dict[str, Quota]:
    """`below` is what queues below it own already."""
    quota, limit = queue.quota(resource), queue.limit(resource)
    own = _ENDLESS if quota is None else max(0, quota - below)
    stays = 0 if quota is not None and not queue.weight(resource) else None
    return {"": Quota(own, stays), LIMIT: Quota(0, limit), FIXED: Quota(0, quota)}


def _owned(queues: Iterable[Queue], resource: str) -> int:
    return sum(_ENDLESS if (quota := queue.quota(resource)) is None else quota for queue in queues)


def _group(parts: Mapping[str, dict[str, Quota]]) -> tuple[ResourceGroup, ...]:
    quotas = {f"{name}{kind}": quota for name, kinds in parts.items() for kind, quota in kinds.items()}
    return (ResourceGroup(KINDS, (FlavorQuotas(FLAVOR, {name: quotas[name] for name in KINDS}),)),)


def _rules(queue: Queue, queues: Mapping[str, Queue]) -> PreemptionRules:
    """With the least run times; a queue that says none has its parent's. For others those count that are said at the
    level at which the ways to both part."""
    path = path_up(queues, queue.name)
    own = next((least for one in path if (least := one.preempt_least_s) is not None), 0.0)
    others: list[float] = []
    for one in reversed(path):
        said = one.reclaim_least_s
        others.append(said if said is not None else others[-1] if others else 0.0)
    others.reverse()
    return replace(_RULES, own_least_s=own, others_least_s=tuple(others) if any(others) else ())


def _steps(siblings: Iterable[Queue]) -> dict[int, int]:
    """Priority -> how many lower ones there are."""
    priorities = sorted({queue.spec.priority for queue in siblings})
    return {priority: min(step, _MOST_STEPS) for step, priority in enumerate(priorities)}


def _weight(queue: Queue) -> float:
    """GPUs are what queues are about; where they have no weight, whatever has."""
    weights = [queue.weight(name) for name in RESOURCES]
    return weights[0] or max(weights)

"""Converts KAI's queues into facts of the quota tree: parents become cohorts, leaves become cluster queues.

The quota of a leaf is its nominal quota. What exceeds it is borrowed, from what others leave unused and from the
capacity of the cluster beyond all quotas; weights decide which queue borrows more. Two rules have no equivalent among
borrowing and lending, and are expressed as separate resources:

- A limit holds for everything below a queue: `<resource>/limit`, with nominal quota 0 and the limit as borrowing limit.
- Non-preemptible units stay within quota at each level: `<resource>/non-preemptible`, in the same way.

Priority is also expressed as weight. Beyond quotas, KAI serves the children of one parent by priority, and by weight
only among equals: each priority step multiplies the weight by a million, so that the queue with higher priority has the
smaller share whatever both use.

Rejected: limits as borrowing limits of the resource itself. A parent's limit below the sum of its children's quotas
could not be expressed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from shoal.api.selectors import Selector
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue, path_to_root
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
"""The root cohort; no queue can have this name."""
LIMIT, NON_PREEMPTIBLE = "/limit", "/non-preemptible"
KINDS = tuple(f"{name}{kind}" for name in RESOURCES for kind in ("", LIMIT, NON_PREEMPTIBLE))
_UNLIMITED = 1 << 60
_PRIORITY_STEP, _MAX_STEPS = 1e6, 40
_RULES = PreemptionRules(within="LowerPriority", reclaim="Any")

SETTINGS = Settings(fair_sharing=True, respect_budgets=True)
"""A non-preemptible unit has a disruption budget of zero."""


def usage_of(amounts: Amounts, *, is_non_preemptible: bool) -> Amounts:
    """The usage of a unit with these requests."""
    found = {name: amounts.get(name, 0) for name in RESOURCES}
    found |= {f"{name}{LIMIT}": amounts.get(name, 0) for name in RESOURCES}
    return found | {f"{name}{NON_PREEMPTIBLE}": amounts.get(name, 0) if is_non_preemptible else 0 for name in RESOURCES}


def local_queue_key(queue: str) -> str:
    """The key of the LocalQueue that points to the queue."""
    return f"{FLAVOR}/{queue}"


def facts_of(queues: Mapping[str, Queue], capacity: Amounts) -> list[Fact]:
    """`capacity`: the total of all nodes. A queue whose parent is missing is left out."""
    children: dict[str, list[Queue]] = {}
    for queue in queues.values():
        children.setdefault(queue.spec.parent_queue, []).append(queue)
    found: list[Fact] = [FlavorFacts(FLAVOR)]
    owned = {name: _owned(children.get("", ()), name) for name in RESOURCES}
    unlimited = Quota(_UNLIMITED)
    left = {
        name: {"": Quota(max(0, capacity.get(name, 0) - owned[name])), LIMIT: unlimited, NON_PREEMPTIBLE: unlimited}
        for name in RESOURCES
    }
    found.append(CohortFacts(ROOT, groups=_group(left)))
    steps = {name: _steps(siblings) for name, siblings in children.items()}
    for queue in queues.values():
        weight = _weight(queue) * _PRIORITY_STEP ** steps[queue.spec.parent_queue][queue.spec.priority]
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
            found.append(LocalQueueFacts(local_queue_key(queue.name), queue.name))
    return found


def _of_queue(queue: Queue, resource: str, below: int) -> dict[str, Quota]:
    """`below`: the quota of the child queues."""
    quota, limit = queue.quota(resource), queue.limit(resource)
    own = _UNLIMITED if quota is None else max(0, quota - below)
    stays = 0 if quota is not None and not queue.weight(resource) else None
    return {"": Quota(own, stays), LIMIT: Quota(0, limit), NON_PREEMPTIBLE: Quota(0, quota)}


def _owned(queues: Iterable[Queue], resource: str) -> int:
    return sum(_UNLIMITED if (quota := queue.quota(resource)) is None else quota for queue in queues)


def _group(parts: Mapping[str, dict[str, Quota]]) -> tuple[ResourceGroup, ...]:
    quotas = {f"{name}{kind}": quota for name, kinds in parts.items() for kind, quota in kinds.items()}
    return (ResourceGroup(KINDS, (FlavorQuotas(FLAVOR, {name: quotas[name] for name in KINDS}),)),)


def _rules(queue: Queue, queues: Mapping[str, Queue]) -> PreemptionRules:
    """The preemption rules with the minimum runtimes, which queues inherit. For reclaim by another queue, the minimum
    runtime at the level below the lowest common ancestor counts."""
    path = path_to_root(queues, queue.name)
    own = next((minimum for one in path if (minimum := one.preempt_min_runtime_s) is not None), 0.0)
    others: list[float] = []
    for one in reversed(path):
        value = one.reclaim_min_runtime_s
        others.append(value if value is not None else others[-1] if others else 0.0)
    others.reverse()
    return replace(_RULES, own_least_s=own, others_least_s=tuple(others) if any(others) else ())


def _steps(siblings: Iterable[Queue]) -> dict[int, int]:
    """Priority -> number of lower priorities."""
    priorities = sorted({queue.spec.priority for queue in siblings})
    return {priority: min(step, _MAX_STEPS) for step, priority in enumerate(priorities)}


def _weight(queue: Queue) -> float:
    """The weight for GPUs; if it is zero, the largest weight."""
    weights = [queue.weight(name) for name in RESOURCES]
    return weights[0] or max(weights)

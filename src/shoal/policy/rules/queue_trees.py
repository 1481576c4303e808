"""Checks the trees of queues of Volcano and KAI: cycles of parents, and quotas above those of the parents."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.groups.queue_parents import cycle_above, cycle_words
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig
from shoal.policy.kinds import KAI_QUEUE, VOLCANO_QUEUE
from shoal.policy.object_set import kind_of

_RESOURCES = ("gpu", "cpu", "memory")


@check(
    Rule(
        "SHL-415",
        "QueueCycle",
        "error",
        fault="queues name each other as parents",
        effect="no workload of these queues, or of queues below them, runs",
        fix="give one of the queues another parent, or none",
        bad="""\
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: vision}
spec: {parentQueue: research}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: research}
spec: {parentQueue: vision}
""",
        changes=(Change("{parentQueue: vision}", "{}"),),
    ),
    options=CheckOptions(in_files=True),
)
def cycles(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Before a cluster has them: nothing but the queues is read."""
    kind = kind_of(obj)
    if kind not in (KAI_QUEUE, VOLCANO_QUEUE):
        return
    field = "parentQueue" if kind == KAI_QUEUE else "parent"

    def parent_of(name: str) -> str:
        parent = dig(context.find(kind, "", name), "spec", field)
        return parent if isinstance(parent, str) else ""

    name = dig(obj, "metadata", "name")
    cycle = cycle_above(name, parent_of) if isinstance(name, str) else ()
    if cycle:
        what = f"the parents form the cycle {cycle_words(cycle)}: no workload of this queue runs"
        yield Advice("QueueCycle", f"spec.{field}", what, "give a queue of the cycle another parent, or none")


@check(
    Rule(
        "SHL-416",
        "QuotaAboveParent",
        "warning",
        fault="the quota of a KAI queue is above the quota of its parent",
        effect="KAI grants it all the same, and queues beside the parent may reclaim what is beyond the parent's quota",
        fix="lower the quota, or raise the parent's",
        bad="""\
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: research}
spec: {resources: {gpu: {quota: 2}}}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: vision}
spec: {parentQueue: research, resources: {gpu: {quota: 6}}}
""",
        changes=(Change("quota: 6", "quota: 2"),),
    ),
    options=CheckOptions(in_files=True),
)
def quotas(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """An unlimited quota is all that the parent has, and so is never above it."""
    if kind_of(obj) != KAI_QUEUE:
        return
    parent = dig(obj, "spec", "parentQueue")
    above = context.find(KAI_QUEUE, "", parent) if isinstance(parent, str) and parent else None
    for resource in _RESOURCES if above is not None else ():
        own, most = _quota(obj, resource), _quota(above, resource)
        if own >= 0 and most >= 0 and own > most:
            what = f"{own:g} is above the {most:g} of its parent {parent}, and quotas are not clamped"
            here = f"spec.resources.{resource}.quota"
            yield Advice("QuotaAboveParent", here, what, "lower it, or raise the parent's quota")


def _quota(obj: object, resource: str) -> float:
    value = dig(obj, "spec", "resources", resource, "quota")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0

"""Finds numbers of one object that contradict each other, and values that the controllers of other projects refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, Rule, check
from shoal.policy.fields import dig, maps, strings
from shoal.policy.kinds import NODE_POOL, OPERATED, SCALED_OBJECT
from shoal.units.near_texts import nearest_name

_DURATION = re.compile(r"(?:[0-9]+[smh])+|Never")
_NODES = re.compile(r"(?:100|[0-9]{1,2})%|[0-9]+")
_CAPACITY_TYPES: Final = ("spot", "on-demand", "reserved")


@check(
    Rule(
        "SHL-113",
        "ContradictoryNumbers",
        "error",
        fault="two numbers of an object contradict each other",
        effect="the object is refused, or never complete",
        fix="make the smaller number at most as large as the larger one",
        bad="""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 4
  tasks:
  - name: worker
    replicas: 2
    template: {spec: {containers: [{name: main, image: "registry.example/train:1.4"}]}}
""",
        changes=(Change("minAvailable: 4", "minAvailable: 2"),),
    ),
    kinds=(*OPERATED, SCALED_OBJECT),
)
def contradictions(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    match str(obj.get("apiVersion")).partition("/")[0], obj.get("kind"):
        case "batch.volcano.sh", "Job":
            yield from _minimum(obj)
        case "ray.io", "RayCluster":
            yield from _groups("spec", obj)
        case "ray.io", "RayJob":
            yield from _groups("spec.rayClusterSpec", obj)
        case "keda.sh", "ScaledObject" | "ScaledJob":
            pair = dig(obj, "spec", "minReplicaCount"), dig(obj, "spec", "maxReplicaCount")
            yield from _order("spec.minReplicaCount", *pair)


def _minimum(obj: Obj) -> Iterator[Advice]:
    tasks = maps(dig(obj, "spec", "tasks"))
    replicas = [each.get("replicas", 1) for each in tasks]
    least = dig(obj, "spec", "minAvailable")
    if tasks and _are_counts(least, *replicas) and least > sum(replicas):
        what = f"{least} pods must run, and the tasks have {sum(replicas)}: Volcano refuses the job"
        yield Advice("ContradictoryNumbers", "spec.minAvailable", what, f"write at most {sum(replicas)}")
    for at, task in enumerate(tasks):
        least, count = task.get("minAvailable"), task.get("replicas", 1)
        if _are_counts(least, count) and least > count:
            what = f"{least} pods must run, and the task has {count}"
            yield Advice("ContradictoryNumbers", f"spec.tasks[{at}].minAvailable", what, f"write at most {count}")


def _groups(path: str, obj: Obj) -> Iterator[Advice]:
    for at, group in enumerate(maps(dig(obj, *path.split("."), "workerGroupSpecs"))):
        here = f"{path}.workerGroupSpecs[{at}]"
        yield from _order(f"{here}.minReplicas", group.get("minReplicas"), group.get("maxReplicas"))


def _order(path: str, least: Any, most: Any) -> Iterator[Advice]:
    if _are_counts(least, most) and least > most:
        yield Advice("ContradictoryNumbers", path, f"{least} is more than the maximum of {most}", "exchange the two")


def _are_counts(*values: Any) -> bool:
    return all(isinstance(each, int) and not isinstance(each, bool) for each in values)


@check(
    Rule(
        "SHL-708",
        "InvalidPool",
        "error",
        fault="a NodePool has a value that Karpenter refuses, or that no node has",
        effect="Karpenter refuses the NodePool, or creates no node for it",
        fix="write a value that Karpenter accepts",
        links=("https://karpenter.sh/docs/concepts/nodepools/",),
        bad="""\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpus}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [ondemand]}]
""",
        changes=(Change("[ondemand]", "[on-demand]"),),
    ),
    kinds=(NODE_POOL,),
)
def pool_values(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    template = dig(obj, "spec", "template", "spec")
    for path, value in (
        ("spec.disruption.consolidateAfter", dig(obj, "spec", "disruption", "consolidateAfter")),
        ("spec.template.spec.expireAfter", dig(template, "expireAfter")),
    ):
        if isinstance(value, str) and not _DURATION.fullmatch(value):
            yield Advice("InvalidPool", path, f'"{value}" is no duration', "write numbers with s, m or h, or Never")
    for at, budget in enumerate(maps(dig(obj, "spec", "disruption", "budgets"))):
        nodes = budget.get("nodes")
        if isinstance(nodes, str) and not _NODES.fullmatch(nodes):
            here = f"spec.disruption.budgets[{at}].nodes"
            yield Advice("InvalidPool", here, f'"{nodes}" is neither a number nor a percentage', "write 10% or 2")
    for at, one in enumerate(maps(dig(template, "requirements"))):
        here, values = f"spec.template.spec.requirements[{at}].values", strings(one.get("values"))
        if one.get("operator") in ("Gt", "Lt", "Gte", "Lte") and not (len(values) == 1 and values[0].isdecimal()):
            what = f"{one['operator']} compares with one whole number"
            yield Advice("InvalidPool", here, what, "write one number in quotes")
        if one.get("key") == "karpenter.sh/capacity-type":
            for value in values:
                if value not in _CAPACITY_TYPES:
                    near = nearest_name(value, _CAPACITY_TYPES)
                    fix = f"did you mean {near}?" if near else f"write {', '.join(_CAPACITY_TYPES)}"
                    yield Advice("InvalidPool", here, f"no node has the capacity type {value}", fix)

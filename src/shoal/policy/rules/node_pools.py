"""Checks NodePools for values that are valid in form and allow no node, or no disruption."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from shoal.data.instances import catalog, find_instance
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, Rule, check
from shoal.policy.fields import dig, maps, strings
from shoal.policy.kinds import NODE_POOL
from shoal.units.near_texts import is_typo
from shoal.units.schedules import ScheduleError, read_schedule

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_SIZE_OF_AWS = re.compile(r"(?:[0-9]{1,3})?(?:nano|micro|small|medium|x?large)|metal(?:-[0-9]{1,3}xl)?", re.ASCII)
_DIGITS = re.compile(r"[0-9]", re.ASCII)
_LIKENESS = 0.8
_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""Whether a schedule is ever due does not depend on when it is asked."""
_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpus}
spec:
  disruption: {budgets: [{nodes: "1", schedule: "0 0 1 2 *", duration: 1h}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [p5.48xlarge]}]
"""


@check(
    Rule(
        "SHL-712",
        "UnknownInstanceType",
        "warning",
        fault="a NodePool names an instance type that is in no table and resembles one that is",
        effect="the pool creates no node",
        fix="write the instance type as the cloud spells it",
        bad=_POOL.replace("48xlarge", "48xlrage"),
        changes=(Change("48xlrage", "48xlarge"),),
    ),
    Rule(
        "SHL-713",
        "DuplicateTaint",
        "error",
        fault="a NodePool has two taints with the same key and effect",
        effect="the API server refuses nodes with both, so no node joins",
        fix="keep one taint of each key and effect",
        bad=_POOL.replace("NoSchedule}]", "NoSchedule}, {key: nvidia.com/gpu, value: a, effect: NoSchedule}]"),
        changes=(Change(", {key: nvidia.com/gpu, value: a, effect: NoSchedule}", ""),),
    ),
    Rule(
        "SHL-714",
        "BudgetNeverDue",
        "warning",
        fault="the schedule of a disruption budget is invalid or never due",
        effect="the budget has no effect",
        fix="write a schedule of cron that is due, in UTC",
        links=("https://karpenter.sh/docs/concepts/disruption/#disruption-controls",),
        bad=_POOL.replace("0 0 1 2 *", "0 0 31 2 *"),
        changes=(Change("0 0 31 2 *", "0 0 1 2 *"),),
    ),
    Rule(
        "SHL-715",
        "ContradictoryRequirements",
        "error",
        fault="no value satisfies all requirements of a NodePool for one key",
        effect="the pool creates no node",
        fix="write one requirement for the key, with all values",
        bad=_POOL.replace(
            "values: [p5.48xlarge]}",
            "values: [p5.48xlarge]}, {key: node.kubernetes.io/instance-type, operator: In, values: [g6.xlarge]}",
        ),
        changes=(Change(", {key: node.kubernetes.io/instance-type, operator: In, values: [g6.xlarge]}", ""),),
    ),
    kinds=(NODE_POOL,),
)
def pool_values(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    template, here = dig(obj, "spec", "template", "spec"), "spec.template.spec"
    requirements = maps(dig(template, "requirements"))
    for at, one in enumerate(requirements):
        if one.get("key") == _INSTANCE_TYPE and one.get("operator") == "In":
            for name in strings(one.get("values")):
                if near := _meant_type(name):
                    what = f"{name} is no instance type; did you mean {near}?"
                    yield Advice("UnknownInstanceType", f"{here}.requirements[{at}].values", what, f"write {near}")
    yield from _contradictions(f"{here}.requirements", requirements)
    for field in ("taints", "startupTaints"):
        seen: set[tuple[object, object]] = set()
        for at, taint in enumerate(maps(dig(template, field))):
            pair = (str(taint.get("key")), str(taint.get("effect")))
            if pair in seen:
                what = f"a taint with key {pair[0]} and effect {pair[1]} is above: no node may have both"
                yield Advice("DuplicateTaint", f"{here}.{field}[{at}]", what, "keep one of the two")
            seen.add(pair)
    for at, budget in enumerate(maps(dig(obj, "spec", "disruption", "budgets"))):
        schedule = budget.get("schedule")
        fault = _schedule_fault(schedule) if isinstance(schedule, str) else ""
        if fault:
            fix = "write minute, hour, day, month and weekday of a moment that comes"
            yield Advice("BudgetNeverDue", f"spec.disruption.budgets[{at}].schedule", fault, fix)


def _contradictions(here: str, requirements: list[Obj]) -> Iterator[Advice]:
    allowed: dict[str, set[str]] = {}
    for at, one in enumerate(requirements):
        if one.get("operator") == "In" and isinstance(one.get("key"), str):
            values = set(strings(one.get("values")))
            left = allowed.setdefault(one["key"], values) & values
            if not left and values and allowed[one["key"]]:
                what = f"no value of {one['key']} is in this list and in those above: the pool creates no node"
                yield Advice("ContradictoryRequirements", f"{here}[{at}]", what, "write one list with all values")
            allowed[one["key"]] = left or values


def _schedule_fault(text: str) -> str:
    try:
        return "" if read_schedule(text).next(_SOME_TIME) is not None else f'"{text}" is never due'
    except ScheduleError as error:
        return f'"{text}" is no schedule: {error}'


def _meant_type(name: str) -> str:
    """The instance type with GPUs that a misspelled one means; empty for types that may exist: the table has those with
    GPUs, so only names of its families are judged, and of AWS only sizes that no type has."""
    if find_instance(name) is not None:
        return ""
    family, dot, size = name.partition(".")
    if dot and _SIZE_OF_AWS.fullmatch(size):
        return ""
    begin = f"{family}." if dot else f"{name.partition('-')[0]}-"
    types = [instance.type for instance in catalog().instances if instance.type.startswith(begin)]
    near = difflib.get_close_matches(name, types, 1, _LIKENESS)
    is_same_size = bool(near) and _DIGITS.findall(name) == _DIGITS.findall(near[0])
    return near[0] if is_same_size and is_typo(name, near[0]) else ""

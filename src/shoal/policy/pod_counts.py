"""How many pods a workload runs at one time, what each requests, and whether a change asks for more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shoal.policy.admission.pod_resources import pod_amounts
from shoal.policy.advice import Obj
from shoal.policy.fields import dig
from shoal.policy.pod_templates import PodTemplateView, pod_templates
from shoal.units.errors import UserError
from shoal.units.numbers import whole_of
from shoal.units.quantity import Quantity

_STEP = re.compile(r"[^.\[\]]+")
_PARTS = ("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices")


def pods_at_once(obj: Obj, path: str) -> int:
    """How many pods of the template run at one time: the product of the counts on the way to it. A Job never runs more
    pods than it has completions."""
    count = 1
    here: Any = obj
    for step in _STEP.findall(path):
        here = here[int(step)] if isinstance(here, list) and step.isdigit() else dig(here, step)
        replicas, parallelism = _whole(here, "replicas"), _whole(here, "parallelism")
        completions = _whole(here, "completions")
        count *= 1 if replicas is None else replicas
        if parallelism is not None:
            count *= parallelism if completions is None else min(parallelism, completions)
    return count


def pod_requests(spec: Obj) -> Mapping[str, Quantity]:
    """Of one pod; empty if an amount is not valid."""
    try:
        # A limit without a request is a request.
        return {**pod_amounts(spec, "limits"), **pod_amounts(spec, "requests")}
    except (UserError, AttributeError, TypeError):
        return {}


def asks_for_more(obj: Obj, before: Obj) -> bool:
    """Whether a change adds pods, a pod requests more than before, or another queue pays. A suspended workload has no
    pods."""
    if _is_suspended(obj):
        return False
    if dig(obj, "spec", "queue") != dig(before, "spec", "queue"):
        return True
    former = {} if _is_suspended(before) else {each.path: each for each in pod_templates(before)}
    for template in pod_templates(obj):
        pods, old = pods_at_once(obj, template.path), former.get(template.path)
        if not pods:
            continue
        if old is None or pods > pods_at_once(before, template.path) or _requests_more(template, old):
            return True
    return False


def _requests_more(template: PodTemplateView, before: PodTemplateView) -> bool:
    old = pod_requests(before.spec)
    amounts = pod_requests(template.spec)
    return any(amount.nano > (old[name].nano if name in old else 0) for name, amount in amounts.items()) or any(
        template.annotations[name] != before.annotations.get(name) for name in _PARTS if name in template.annotations
    )


def _is_suspended(obj: Obj) -> bool:
    return dig(obj, "spec", "suspend") is True or dig(obj, "spec", "runPolicy", "suspend") is True


def _whole(here: Any, field: str) -> int | None:
    return whole_of(str(dig(here, field)))

"""Quotas and limits that do something else than their writers think."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.controllers.advising.advice import Advice
from shoal.controllers.advising.around import Around, dig, maps, named, texts
from shoal.controllers.advising.templates import gpus_of
from shoal.store.live.item import Obj
from shoal.store.live.kind import PODS, PRIORITY_CLASSES

_LIMITS, _REQUESTS = "limits.", "requests."
_GPU = "nvidia.com/gpu"


def uncounted_limits(obj: Obj, _: Around) -> Iterator[Advice]:
    """Only requests of extended resources are counted."""
    hard = named(dig(obj, "spec", "hard"))
    for item in hard:
        resource = item.removeprefix(_LIMITS)
        if item.startswith(_LIMITS) and "/" in resource:
            other = _REQUESTS + resource
            fix = f"{other} is enforced already; leave this out" if other in hard else f"write {other}"
            what = "nothing is ever counted against limits of extended resources, which cannot differ from requests"
            yield Advice("NeverCounted", f"spec.hard[{item}]", what, fix)


def unknown_priorities(obj: Obj, around: Around) -> Iterator[Advice]:
    for at, one in enumerate(maps(dig(obj, "spec", "scopeSelector", "matchExpressions"))):
        names = texts(one.get("values"))
        if one.get("scopeName") != "PriorityClass" or one.get("operator") != "In":
            continue
        lacking = [name for name in names if around.lacks(PRIORITY_CLASSES, "", name)]
        if lacking:
            rest = "" if len(lacking) < len(names) else ", so no pod counts"
            yield Advice(
                "UnknownPriorityClass",
                f"spec.scopeSelector.matchExpressions[{at}].values",
                f"there is no PriorityClass {' or '.join(lacking)}{rest}: pods are counted by their priorityClassName, "
                "which a WorkloadPriorityClass is not",
                "create the PriorityClass and name it in the pods",
            )


def gpus_for_everybody(obj: Obj, around: Around) -> Iterator[Advice]:
    """A limit range acts on every container, sidecars and CPU pods among them."""
    for at, limit in enumerate(maps(dig(obj, "spec", "limits"))):
        if limit.get("type") != "Container":
            continue
        here = f"spec.limits[{at}]"
        default = next((field for field in ("default", "defaultRequest") if _GPU in named(limit.get(field))), "")
        if default:
            yield Advice(
                "GpuByDefault",
                f"{here}.{default}[{_GPU}]",
                "every container that asks for no GPU gets one, sidecars and CPU pods too"
                + _now(around, str(dig(obj, "metadata", "namespace"))),
                "leave the GPU out of the defaults; bound pods with type: Pod and max",
            )
        if str(named(limit.get("min")).get(_GPU, "0")) != "0":
            yield Advice(
                "GpuDemanded",
                f"{here}.min[{_GPU}]",
                "containers without a GPU are refused or given one",
                "leave it out, so that CPU pods may run in this namespace",
            )


def _now(around: Around, namespace: str) -> str:
    count = sum(
        not gpus_of(container)
        for pod in around.all(PODS, namespace)
        for container in maps(dig(pod, "spec", "containers"))
    )
    if not count:
        return ""
    return f"; {count} container{'s' if count > 1 else ''} here now would get one when created anew"

"""The controllers of a project: by their usual names, or by what the webhooks of the project lead to.

Helm puts the name of a release before the names of objects, as in `prod-kueue-controller-manager`. The Services that
the API server asks about the kinds of the project have selectors, and these match the pods of its Deployments.

Rejected: every Deployment whose name ends like a usual one. A user may have one of that name, and it would be stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from shoal.install.adoption.facts import AdoptionFacts
from shoal.install.adoption.projects import AdoptedProject
from shoal.install.objects.certificates import WEBHOOK_SERVICE

Obj = dict[str, Any]


def controllers_of(project: AdoptedProject, namespace: str, facts: AdoptionFacts) -> list[Obj]:
    """Its Deployments in the namespace, in the order in which they are stopped."""
    here = [one for one in facts.deployments if one["metadata"]["namespace"] == namespace and not is_ours(one)]
    groups = _groups(project)
    asked = _others((*_hooked(groups, facts), *_converted(groups, facts)))
    targets = {name for space, name in asked if space == namespace}
    selectors = [
        (one.get("spec") or {}).get("selector") or {} for one in facts.services if one["metadata"]["name"] in targets
    ]
    led_to = {_name(one) for one in here if any(_selects(selector, one) for selector in selectors)}
    names = {*led_to, *_of_the_same_release(project, led_to)}
    found = [one for one in here if project.is_controller(_name(one)) or _name(one) in names]
    return sorted(found, key=lambda one: project.rank(_name(one)))


def converting_services(project: AdoptedProject, facts: AdoptionFacts) -> set[tuple[str, str]]:
    """Namespaces and names of the Services that convert the objects of the project, without Shoal's."""
    return set(_others(_converted(_groups(project), facts)))


def is_ours(obj: Obj) -> bool:
    return (obj["metadata"].get("labels") or {}).get("app.kubernetes.io/name") == "shoal"


def configuration_name(project: AdoptedProject, controllers: Sequence[Obj]) -> str:
    """The ConfigMap that a controller mounts as its configuration; empty if there is none with such a name."""
    ending = project.config_map.removeprefix(project.name)
    for one in controllers:
        for volume in (one["spec"]["template"].get("spec") or {}).get("volumes") or ():
            name = str((volume.get("configMap") or {}).get("name", ""))
            if ending and name.endswith(ending):
                return name
    return ""


def _groups(project: AdoptedProject) -> set[str]:
    return {kind.group for kind in project.kinds}


def _others(services: Iterable[Obj]) -> Iterator[tuple[str, str]]:
    for one in services:
        found = str(one.get("namespace", "")), str(one.get("name", ""))
        if all(found) and found[1] != WEBHOOK_SERVICE:
            yield found


def _hooked(groups: set[str], facts: AdoptionFacts) -> Iterator[Obj]:
    for obj in facts.hooks:
        for hook in obj.get("webhooks") or ():
            asked = {group for rule in hook.get("rules") or () for group in rule.get("apiGroups") or ()}
            if asked & groups:
                yield (hook.get("clientConfig") or {}).get("service") or {}


def _converted(groups: set[str], facts: AdoptionFacts) -> Iterator[Obj]:
    for obj in facts.definitions:
        if obj["spec"].get("group") in groups:
            hook = (obj["spec"].get("conversion") or {}).get("webhook") or {}
            yield (hook.get("clientConfig") or {}).get("service") or {}


def _selects(selector: Obj, deployment: Obj) -> bool:
    labels = (deployment["spec"]["template"].get("metadata") or {}).get("labels") or {}
    return bool(selector) and selector.items() <= labels.items()


def _of_the_same_release(project: AdoptedProject, led_to: set[str]) -> Iterator[str]:
    """Not each controller has a webhook: those of `prod-admission` are `prod-scheduler` and `prod-controllers`."""
    endings = [name.removeprefix(project.name) for name in project.deployments]
    for name in led_to:
        for ending in endings:
            if name.endswith(ending):
                yield from (name.removesuffix(ending) + other for other in endings)


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])

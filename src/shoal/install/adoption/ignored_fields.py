"""Names the fields of another project's objects that have no effect, or another effect, once Shoal decides.

Each is named with its object and path, so that the plan of an adoption can be reviewed field by field. A field with a
default that changes nothing is not named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.kueue.unknown_fields import strays
from shoal.api.yaml_text import read_yaml
from shoal.install.adoption.projects import KUEUE, AdoptedKind, AdoptedProject
from shoal.units.errors import UserError

Obj = dict[str, Any]


class IgnoredField(msgspec.Struct, frozen=True, rename="camel"):
    obj: str
    """Kind and name."""
    path: str
    """Empty: the whole object."""
    effect: str


_CHECKS = {
    "kueue.x-k8s.io/multikueue": "no job is sent to other clusters: workloads of queues with this check wait",
}
_NO_EFFECT = "no effect"
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "Queue.scheduling.volcano.sh": {
        "spec.affinity": _NO_EFFECT,
        "spec.type": _NO_EFFECT,
        "spec.extendClusters": "no group is forwarded to other clusters",
    },
    "Job.batch.volcano.sh": {
        "spec.plugins.hcclrank": "the job runs without the plugin",
        "spec.plugins.ray": "the job runs without the plugin",
        "spec.tasks[].partitionPolicy": _NO_EFFECT,
    },
}
_WHOLE = {
    "MultiKueueConfig": "no job is sent to other clusters",
    "MultiKueueCluster": "no job is sent to other clusters",
    "CronJob": "no Job is created at its times; a CronJob of Kubernetes can create them",
    "JobFlow": "no Job is created from it",
    "JobTemplate": "no Job is created from it",
    "BindRequest": "the pod is placed again if it has no node yet",
}
_CONFIGURATION = {
    "multiKueue": "no job is sent to other clusters",
    "objectRetentionPolicies": "finished workloads are kept",
    "integrations.externalFrameworks": "jobs of these kinds are not queued",
    "integrations.podOptions": "managedJobsNamespaceSelector chooses the namespaces",
    "visibility": "the visibility API is not served; shoal queue shows the same",
    "queueVisibility": "the visibility API is not served; shoal queue shows the same",
}
_GATES = {"MultiKueue": "no job is sent to other clusters", "ConcurrentAdmission": "one Workload for each job"}


def ignored_fields(
    project: AdoptedProject, objects: Mapping[AdoptedKind, Sequence[Obj]], settings: Mapping[str, str]
) -> Iterator[IgnoredField]:
    """`settings`: the data of the project's ConfigMap. What the readers of its discipline name is not repeated here."""
    for kind, listed in objects.items():
        for obj in listed:
            yield from _of_object(kind, obj)
    if project.name == KUEUE.name:
        for text in settings.values():
            yield from _settings(text, f"ConfigMap {project.config_map}")


def _of_object(kind: AdoptedKind, obj: Obj) -> Iterator[IgnoredField]:
    meta = obj["metadata"]
    name = f"{kind.name} {meta['namespace']}/{meta['name']}" if meta.get("namespace") else f"{kind.name} {meta['name']}"
    if kind.name in _WHOLE and not kind.use:
        yield IgnoredField(name, "", _WHOLE[kind.name])
    for path, effect in _FIELDS.get(f"{kind.name}.{kind.group}", {}).items():
        for found in _present(obj, path.split("."), ""):
            yield IgnoredField(name, found, effect)
    if kind.name == "AdmissionCheck":
        controller = (obj.get("spec") or {}).get("controllerName", "")
        if controller in _CHECKS:
            yield IgnoredField(name, "spec.controllerName", _CHECKS[controller])


def _present(value: Any, names: Sequence[str], before: str) -> Iterator[str]:
    """The paths of a pattern that exist; a name with [] means each element of a list."""
    if not names:
        if value not in (None, "", [], {}):
            yield before
        return
    name = names[0].removesuffix("[]")
    if not isinstance(value, dict) or name not in value:
        return
    path = f"{before}.{name}" if before else name
    if names[0] == name:
        # A plugin of Volcano may have no arguments.
        found = value[name] if len(names) > 1 or value[name] != [] or "plugins" not in before else True
        yield from _present(found, names[1:], path)
        return
    for place, one in enumerate(value[name] if isinstance(value[name], list) else ()):
        yield from _present(one, names[1:], f"{path}[{place}]")


def _settings(text: str, name: str) -> Iterator[IgnoredField]:
    try:
        for _, value in read_yaml(text):
            if isinstance(value, dict):
                yield from _kueue_settings(name, value)
        for one in strays(text):
            yield IgnoredField(name, one.where.path, "the field is unknown and ignored")
    except UserError as error:
        yield IgnoredField(name, "", f"it cannot be read: {error.what}")


def _kueue_settings(name: str, value: Obj) -> Iterator[IgnoredField]:
    for path, effect in _CONFIGURATION.items():
        for found in _present(value, path.split("."), ""):
            yield IgnoredField(name, found, effect)
    gates = value.get("featureGates")
    for gate, effect in _GATES.items():
        if isinstance(gates, dict) and gates.get(gate) is True:
            yield IgnoredField(name, f"featureGates.{gate}", effect)

"""Names the fields of another project's objects that have no effect, or another effect, once Shoal decides.

Each is named with its object and path, so that the plan of an adoption can be reviewed field by field. A field with a
default that changes nothing is not named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.kueue.unknown_fields import strays
from shoal.api.yaml_text import read_yaml
from shoal.install.adoption.projects import KUEUE, VOLCANO, AdoptedKind, AdoptedProject
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
        "spec.priority": "queues are not ordered by priority",
        "spec.affinity": _NO_EFFECT,
        "spec.type": _NO_EFFECT,
        "spec.extendClusters": "no group is forwarded to other clusters",
    },
    "Job.batch.volcano.sh": {
        "spec.plugins.hcclrank": "the job runs without the plugin",
        "spec.plugins.ray": "the job runs without the plugin",
        "spec.tasks[].partitionPolicy": _NO_EFFECT,
    },
    "SchedulingShard.kai.scheduler": {
        "spec.partitionLabelValue": "one scheduler serves all node pools",
        "spec.placementStrategy": "the policy of Shoal chooses nodes (config.policy)",
        "spec.args": _NO_EFFECT,
        "spec.plugins": _NO_EFFECT,
        "spec.actions": _NO_EFFECT,
        "spec.queueDepthPerAction": _NO_EFFECT,
        "spec.minRuntime": "only the runtimes of queues apply (preemptMinRuntime, reclaimMinRuntime)",
        "spec.kValue": "fair shares do not depend on former use",
        "spec.usageDBConfig": "fair shares do not depend on former use",
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
_VOLCANO_ACTIONS = frozenset({"enqueue", "allocate", "backfill", "preempt", "reclaim"})
_VOLCANO_PLUGINS = frozenset({"gang", "priority", "predicates", "proportion", "capacity", "network-topology-aware"})
_SCORES = frozenset({"binpack", "nodeorder", "resource-strategy-fit"})


def ignored_fields(
    project: AdoptedProject, objects: Mapping[AdoptedKind, Sequence[Obj]], settings: Mapping[str, str]
) -> Iterator[IgnoredField]:
    """`settings`: the data of the project's ConfigMap."""
    for kind, listed in objects.items():
        for obj in listed:
            yield from _of_object(kind, obj)
    read = {KUEUE.name: _kueue_settings, VOLCANO.name: _volcano_settings}.get(project.name)
    if read is not None:
        for text in settings.values():
            yield from _settings(text, f"ConfigMap {project.config_map}", read)


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
    if (kind.name, kind.group) == ("Queue", "scheduling.run.ai"):
        yield from _weights(name, obj)


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


def _weights(name: str, obj: Obj) -> Iterator[IgnoredField]:
    """One weight applies to all resources of a queue: that of its GPUs."""
    resources = (obj.get("spec") or {}).get("resources") or {}
    weights = {one: (resources.get(one) or {}).get("overQuotaWeight") for one in ("gpu", "cpu", "memory")}
    gpu = weights.pop("gpu")
    for resource, weight in weights.items():
        if gpu and weight is not None and weight != gpu:
            path = f"spec.resources.{resource}.overQuotaWeight"
            yield IgnoredField(name, path, f"the weight of GPUs, {gpu:g}, applies to all resources")


def _settings(text: str, name: str, read: Callable[[str, Obj], Iterator[IgnoredField]]) -> Iterator[IgnoredField]:
    try:
        for _, value in read_yaml(text):
            if isinstance(value, dict):
                yield from read(name, value)
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


def _volcano_settings(name: str, value: Obj) -> Iterator[IgnoredField]:
    actions = value.get("actions")
    for action in actions.split(",") if isinstance(actions, str) else ():
        if action.strip() and action.strip() not in _VOLCANO_ACTIONS:
            yield IgnoredField(name, f"actions: {action.strip()}", "the action is not performed")
    tiers = value.get("tiers")
    for at, tier in enumerate(tiers if isinstance(tiers, list) else ()):
        plugins = tier.get("plugins") if isinstance(tier, dict) else ()
        for place, plugin in enumerate(plugins if isinstance(plugins, list) else ()):
            called = plugin.get("name", "") if isinstance(plugin, dict) else ""
            path = f"tiers[{at}].plugins[{place}]: {called}"
            if called in _SCORES:
                yield IgnoredField(name, path, "the policy of Shoal chooses nodes (config.policy)")
            elif called not in _VOLCANO_PLUGINS:
                yield IgnoredField(name, path, _NO_EFFECT)
            elif plugin.keys() - {"name"}:
                yield IgnoredField(name, path, "its switches and arguments have no effect")
    for field in ("configurations", "metrics"):
        if value.get(field):
            yield IgnoredField(name, field, _NO_EFFECT)

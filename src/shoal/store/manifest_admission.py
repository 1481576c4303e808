"""Applies LimitRanges, PriorityClasses and ResourceQuotas to the pods of manifests, as an API server does at creation.

Pods that exist (with a uid, or on a node) passed admission before: they count against quotas and are not judged. The
others are created in the order of their creation times, then of the manifests; a refused pod uses nothing, and waits
with the message of the API server. A controller that a quota on its own kind (`count/jobs.batch`) refuses makes no
pods.

What a quota says is used (`status.used`) is taken as it is if it belongs to its spec; else the existing pods are
counted.

Rejected: judging the typed pods. The embedded API server has the same rules for objects of any kind, and two versions
of them would differ one day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from shoal.api.decode import convert
from shoal.api.limit_ranges import LimitRange
from shoal.api.pod import Pod, PodSpec
from shoal.api.resource_quotas import ResourceQuota
from shoal.api.wire import ApiStruct, to_json
from shoal.api.workloads import Deployment, Job, ReplicaSet, StatefulSet
from shoal.engine.from_api import Priorities
from shoal.engine.reasons import Code
from shoal.policy.admission.faults import aggregate
from shoal.policy.admission.limit_ranges import complete, faults_of, set_defaults
from shoal.policy.admission.pod_resources import Amounts, Obj
from shoal.policy.admission.priority_classes import class_not_found
from shoal.policy.admission.quota.evaluator import Evaluator
from shoal.policy.admission.quota.pods import PodEvaluator
from shoal.policy.admission.quota.tracked_quota import TrackedQuota, changed
from shoal.store.held_pods import HeldPod
from shoal.store.inventory import Inventory, Placed

_PODS = PodEvaluator()
_CONTROLLERS: Mapping[type[ApiStruct], tuple[str, Evaluator]] = {
    kind: (plural, Evaluator((group, plural.partition(".")[0])))
    for kind, plural, group in (
        (Job, "jobs.batch", "batch"),
        (Deployment, "deployments.apps", "apps"),
        (ReplicaSet, "replicasets.apps", "apps"),
        (StatefulSet, "statefulsets.apps", "apps"),
    )
}
_HELP_RAISE = "End what uses the quota, or raise it."


class ManifestAdmission:
    def __init__(self, inventory: Inventory, priorities: Priorities) -> None:
        self._priorities = priorities
        self._quotas = _by_namespace(TrackedQuota(plain(each.value)) for each in inventory.of(ResourceQuota))
        self._uncounted = [quota for quotas in self._quotas.values() for quota in quotas if quota.said is None]
        self._ranges: dict[str, list[Obj]] = {}
        for each in sorted(inventory.of(LimitRange), key=lambda one: one.value.metadata.name):
            limits = plain(each.value)
            complete(limits)
            self._ranges.setdefault(each.value.metadata.namespace, []).append(limits)
        self._refused_controllers = self._controllers(inventory)
        self._owners = _owners_of_replica_sets(inventory)
        self.refused: dict[str, HeldPod] = {}
        """The pods that are not created, with the reason."""

    def admitted(self, pods: Sequence[Placed[Pod]]) -> list[Placed[Pod]]:
        """The pods that exist or may be created, with what a LimitRange sets, in the order given."""
        order = sorted(range(len(pods)), key=lambda at: (not _exists(pods[at].value), *_age(pods[at].value), at))
        found: dict[int, Placed[Pod]] = {}
        for at in order:
            judged = self._judge(pods[at])
            if isinstance(judged, HeldPod):
                self.refused[pods[at].value.metadata.key] = judged
            else:
                found[at] = judged
        return [found[at] for at in sorted(found)]

    def _judge(self, placed: Placed[Pod]) -> Placed[Pod] | HeldPod:
        pod = placed.value
        namespace = pod.metadata.namespace
        if _exists(pod):
            for quota in self._quotas.get(namespace, ()):
                if quota in self._uncounted:
                    _use(quota, quota.usage(_PODS, creation_of(pod)))
            return placed
        if fault := self._refused_controllers.get(str(placed.where)):
            return HeldPod(Code.FORBIDDEN, fault, _HELP_RAISE)
        name = pod.spec.priority_class_name
        if name and pod.spec.priority is None and not self._priorities.has(name):
            return _refusal(pod, class_not_found(name), self._priorities.remedy(name))
        if namespace not in self._quotas and namespace not in self._ranges:
            return placed
        obj = creation_of(pod)
        for limit_range in self._ranges.get(namespace, ()):
            set_defaults(obj, limit_range)
        for limit_range in self._ranges.get(namespace, ()):
            if faults := faults_of(obj, limit_range):
                name = limit_range["metadata"]["name"]
                return _refusal(
                    pod, aggregate(faults), f"{self._correction(placed)}, or LimitRange {namespace}/{name}."
                )
        return self._charge(placed, obj)

    def _charge(self, placed: Placed[Pod], obj: Obj) -> Placed[Pod] | HeldPod:
        pod = placed.value
        quotas = self._quotas.get(pod.metadata.namespace, ())
        for quota in quotas:
            required = _PODS.matching(quota.hard) if quota.counts(_PODS, obj) else set()
            if silent := _PODS.missing(required, obj):
                help_ = self._settings(placed, _PODS.silent_containers(required, obj), quota.name)
                return _refusal(pod, f"failed quota: {quota.name}: {silent}", help_)
        used = [quota.usage(_PODS, obj) for quota in quotas]
        for quota, amounts in zip(quotas, used, strict=True):
            if fault := quota.exceeded(amounts, quota.said or {}):
                return _refusal(pod, fault, _HELP_RAISE)
        for quota, amounts in zip(quotas, used, strict=True):
            _use(quota, amounts)
        if pod.metadata.namespace not in self._ranges:
            return placed
        spec = convert(obj["spec"], PodSpec, placed.at("spec"))
        return Placed(structs.replace(pod, spec=spec), placed.where, placed.inside)

    def _correction(self, placed: Placed[Pod]) -> str:
        """Where the requests and limits of a pod are written."""
        return f"Correct the requests and limits below {placed.at('spec').path} of {self._written_in(placed)}"

    def _settings(self, placed: Placed[Pod], silent: Mapping[str, Mapping[str, str]], quota: str) -> str:
        """Which fields of which object have to be set."""
        fields = []
        for resource, containers in silent.items():
            side, _, name = resource.rpartition(".")
            fields += [placed.at(f"{path}.resources.{side or 'requests'}.{name}").path for path in containers]
        namespace, it = placed.value.metadata.namespace, "it" if len(fields) == 1 else "them"
        written = self._written_in(placed)
        words = f"In {written}, set {', '.join(fields)}: ResourceQuota {namespace}/{quota} requires {it}."
        if written.startswith("job "):
            words += " The template of an existing job cannot be changed: delete it and create it again."
        return f"{words} Or set defaults in a LimitRange of namespace {namespace}."

    def _written_in(self, placed: Placed[Pod]) -> str:
        """The object that has the fields of the pod."""
        kind, _, key = placed.where.obj.partition(" ")
        found = f"{kind.lower()} {key}" if key else f"pod {placed.value.metadata.key}"
        return self._owners.get(found, found)

    def _controllers(self, inventory: Inventory) -> dict[str, str]:
        """Why controllers that are not created yet are refused, by their places in the manifests."""
        refused: dict[str, str] = {}
        for kind, (plural, evaluator) in _CONTROLLERS.items():
            controllers = inventory.of(kind)
            for placed in sorted(controllers, key=lambda each: not each.value.metadata.uid):  # type: ignore[attr-defined]
                meta = placed.value.metadata  # type: ignore[attr-defined]
                for quota in self._quotas.get(meta.namespace, ()):
                    amounts = quota.usage(evaluator, {})
                    if meta.uid:
                        _use(quota, amounts if quota in self._uncounted else {})
                    elif fault := quota.exceeded(amounts, quota.said or {}):
                        refused.setdefault(str(placed.where), f'{plural} "{meta.name}" is forbidden: {fault}')
                    else:
                        _use(quota, amounts)
        return refused


def _refusal(pod: Pod, fault: str, help_: str) -> HeldPod:
    return HeldPod(Code.FORBIDDEN, f'pods "{pod.metadata.name}" is forbidden: {fault}', help_)


def _owners_of_replica_sets(inventory: Inventory) -> dict[str, str]:
    """The Deployments in whose templates the pods of ReplicaSets are written."""
    found = {}
    for placed in inventory.of(ReplicaSet):
        meta = placed.value.metadata
        owner = meta.controller()
        if owner is not None and owner.kind == "Deployment":
            found[f"replicaset {meta.key}"] = f"deployment {meta.namespace}/{owner.name}"
    return found


def _exists(pod: Pod) -> bool:
    return bool(pod.metadata.uid or pod.spec.node_name) or pod.is_finished()


def _age(pod: Pod) -> tuple[bool, float]:
    """Pods without a creation time are created now."""
    created = pod.metadata.creation_timestamp
    return created is None, 0.0 if created is None else created.timestamp()


def plain(value: ApiStruct) -> Obj:
    """As the API writes it."""
    found: Obj = msgspec.json.decode(to_json(value))
    return found


def creation_of(pod: Pod) -> Obj:
    """The pod as it comes to admission: what a container does not request, it requests as much as its limit."""
    obj = {"metadata": {}, "spec": {}, **plain(pod)}
    for field in ("containers", "initContainers"):
        for container in obj["spec"].get(field) or ():
            resources = container.get("resources") or {}
            if resources.get("limits"):
                resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    return obj


def _use(quota: TrackedQuota, amounts: Amounts) -> None:
    quota.said = changed(quota.said or {}, amounts)


def _by_namespace(quotas: Iterable[TrackedQuota]) -> dict[str, list[TrackedQuota]]:
    found: dict[str, list[TrackedQuota]] = {}
    for quota in sorted(quotas, key=lambda each: each.name):
        found.setdefault(quota.namespace, []).append(quota)
    return found

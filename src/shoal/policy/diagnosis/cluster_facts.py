"""The objects that a diagnosis reads, with the questions that several decision trees ask about them.

Guarantees: objects may have any structure. What was not read is known as such: `is_known` and `why_unknown` say whether
an empty answer means that there is nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

import msgspec

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.taints import Taint, Toleration
from shoal.policy.advice import Obj
from shoal.policy.diagnosis.verdicts import NotRun
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import EVENT, NODE, POD, WORKLOAD, GroupKind
from shoal.policy.object_set import ObjectSet, key_of, kind_of
from shoal.units.errors import UserError, one_line
from shoal.units.numbers import whole_of
from shoal.units.quantity import ZERO, Quantity

GPU_DOMAIN = "nvidia.com/"
GPU = "nvidia.com/gpu"
T = TypeVar("T")
_JOB_LABELS = (
    "batch.kubernetes.io/job-name",
    "job-name",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "volcano.sh/job-name",
    "ray.io/cluster",
)
_MOST_TEXT = 300
_WITHOUT_NAMESPACE = ("Node", "NodeClaim", "NodePool")
Amounts = dict[str, int]


class MeasuredSize(msgspec.Struct, frozen=True):
    """What would suffice for a job, by its recorded use."""

    job: str
    """`namespace/name`."""
    suffices: str
    evidence: str


class DiagnosedCluster:
    def __init__(
        self,
        objects: Iterable[Obj],
        complete: Collection[GroupKind] = (),
        *,
        unread: Mapping[GroupKind, str] | None = None,
        logs: Mapping[str, str] | None = None,
        metrics: str | None = None,
    ) -> None:
        """`complete`: kinds of which all objects are given. `unread`: why a kind is not. `logs`: by `namespace/pod`.
        `metrics`: in the text format of Prometheus.
        """
        self._objects = list(objects)
        self.set = ObjectSet(self._objects, complete)
        self._known = frozenset(complete) | {kind_of(obj) for obj in self._objects}
        self._unread = dict(unread or {})
        self.logs = dict(logs or {})
        self.metrics = metrics
        self.sizes: dict[str, MeasuredSize] = {}
        """By `namespace/pod`, of the jobs that use a small part of their GPUs."""

    def is_known(self, kind: GroupKind) -> bool:
        return kind in self._known

    def why_unknown(self, kind: GroupKind) -> str:
        return self._unread.get(kind, f"no object of the kind {kind.name} is given")

    def refusal(self, kind: GroupKind) -> str:
        """Why objects of the kind may not be read; empty if they may."""
        return self._unread.get(kind, "")

    def not_run(self, subject: str, check: str, *kinds: GroupKind) -> NotRun | None:
        """None if objects of all these kinds are known."""
        missing = next((kind for kind in kinds if not self.is_known(kind)), None)
        return None if missing is None else NotRun(subject, check, self.why_unknown(missing))

    def all(self, kind: GroupKind, namespace: str = "") -> list[Obj]:
        return list(self.set.all(kind, namespace))

    def find(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        return self.set.find(kind, namespace, name)

    @cached_property
    def nodes(self) -> list[Obj]:
        return sorted(self.all(NODE), key=name_of)

    @cached_property
    def pods(self) -> list[Obj]:
        return sorted(self.all(POD), key=key_of)

    @cached_property
    def _pods_by_node(self) -> dict[str, list[Obj]]:
        found: dict[str, list[Obj]] = defaultdict(list)
        for pod in self.pods:
            found[str(dig(pod, "spec", "nodeName") or "")].append(pod)
        return found

    def pods_on(self, node: str) -> list[Obj]:
        """Those that have not ended."""
        return [pod for pod in self._pods_by_node.get(node, ()) if not has_ended(pod)] if node else []

    @cached_property
    def _used(self) -> dict[str, Amounts]:
        found: dict[str, Amounts] = {}
        for node in self._pods_by_node:
            amounts: Amounts = defaultdict(int)
            for pod in self.pods_on(node):
                for name, amount in device_requests(pod).items():
                    amounts[name] += amount
            found[node] = amounts
        return found

    def used_on(self, node: str, resource: str) -> int:
        return self._used.get(node, {}).get(resource, 0)

    def holders(self, node: str, resource: str = "") -> list[Obj]:
        """Pods on the node that hold devices."""
        return [pod for pod in self.pods_on(node) if any(resource in ("", name) for name in device_requests(pod))]

    @cached_property
    def _pods_by_job(self) -> dict[tuple[str, str], list[Obj]]:
        found: dict[tuple[str, str], list[Obj]] = defaultdict(list)
        for pod in self.pods:
            labels, namespace = labels_of(pod), key_of(pod)[0]
            for name in {labels[key] for key in _JOB_LABELS if key in labels}:
                found[namespace, name].append(pod)
        return found

    def labelled_for(self, job: Obj) -> list[Obj]:
        """Pods with the labels of the controller of the job."""
        return self._pods_by_job.get(key_of(job), [])

    @cached_property
    def _by_owner(self) -> dict[tuple[GroupKind, str, str, str], list[Obj]]:
        found: dict[tuple[GroupKind, str, str, str], list[Obj]] = defaultdict(list)
        for kind in (POD, WORKLOAD):
            for obj in self.all(kind):
                for owner in maps(dig(obj, "metadata", "ownerReferences")):
                    found[kind, key_of(obj)[0], str(owner.get("kind")), str(owner.get("name"))].append(obj)
        return found

    def owned_by(self, kind: GroupKind, owner: Obj) -> list[Obj]:
        """Pods or Workloads."""
        namespace, name = key_of(owner)
        return self._by_owner.get((kind, namespace, str(owner.get("kind")), name), [])

    @cached_property
    def quota_used(self) -> dict[str, dict[str, Quantity]]:
        """By ClusterQueue and resource, of the workloads that are admitted and have not finished."""
        found: dict[str, dict[str, Quantity]] = defaultdict(lambda: defaultdict(lambda: ZERO))
        for workload in self.all(WORKLOAD):
            admission = dig(workload, "status", "admission")
            if not admission or condition(workload, "Finished").get("status") == "True":
                continue
            for pods in maps(dig(admission, "podSetAssignments")):
                for name, amount in string_keys(pods.get("resourceUsage")).items():
                    found[str(dig(admission, "clusterQueue"))][name] += quantity_of(amount)
        return found

    @cached_property
    def _events_by_object(self) -> dict[tuple[str, str, str], list[Obj]]:
        found: dict[tuple[str, str, str], list[Obj]] = defaultdict(list)
        for event in self.all(EVENT):
            about = string_keys(event.get("involvedObject") or event.get("regarding"))
            kind, name = str(about.get("kind") or ""), str(about.get("name") or "")
            # Some writers name the namespace of the Event for objects that have none.
            namespace = "" if kind in _WITHOUT_NAMESPACE else str(about.get("namespace") or "")
            found[kind, namespace, name].append(event)
        for events in found.values():
            events.sort(key=event_time)
        return found

    def events_of(self, kind: str) -> list[Obj]:
        """About all objects of a kind."""
        return [event for key, events in self._events_by_object.items() if key[0] == kind for event in events]

    def events(self, obj: Obj) -> list[Obj]:
        """About the object, the oldest first; not those about an earlier object of the same name."""
        namespace, name = key_of(obj)
        found = self._events_by_object.get((str(obj.get("kind") or ""), namespace, name), [])
        uid = dig(obj, "metadata", "uid")
        # The kubelet writes the name of its node as the uid.
        return [event for event in found if not uid or _uid_of_subject(event) in (uid, name, "")]


def _uid_of_subject(event: Obj) -> str:
    return str(dig(event, "involvedObject", "uid") or dig(event, "regarding", "uid") or "")


def name_of(obj: Obj) -> str:
    return key_of(obj)[1]


def named(obj: Obj) -> str:
    """`pod team-a/train-0`."""
    namespace, name = key_of(obj)
    return f"{str(obj.get('kind') or '').lower()} {namespace}/{name}" if namespace else f"{_kind_word(obj)} {name}"


def _kind_word(obj: Obj) -> str:
    return str(obj.get("kind") or "").lower()


def labels_of(obj: Obj) -> dict[str, str]:
    return {key: str(value) for key, value in string_keys(dig(obj, "metadata", "labels")).items()}


def has_ended(pod: Obj) -> bool:
    return str(dig(pod, "status", "phase")) in TERMINAL_PHASES


def is_waiting(pod: Obj) -> bool:
    """For a node, and not being deleted."""
    return not (dig(pod, "spec", "nodeName") or has_ended(pod) or dig(pod, "metadata", "deletionTimestamp"))


def device_requests(pod: Obj) -> Amounts:
    """Amounts of NVIDIA's resources: containers at one time together, each init container alone."""
    at_once: Amounts = defaultdict(int)
    for container in maps(dig(pod, "spec", "containers")):
        for name, amount in _container_devices(container).items():
            at_once[name] += amount
    for container in maps(dig(pod, "spec", "initContainers")):
        for name, amount in _container_devices(container).items():
            at_once[name] = max(at_once[name], amount)
    return {name: amount for name, amount in at_once.items() if amount}


def _container_devices(container: Obj) -> Amounts:
    limits, requests = (string_keys(dig(container, "resources", field)) for field in ("limits", "requests"))
    amounts = {**limits, **requests}
    return {name: whole_of(str(amount)) or 0 for name, amount in amounts.items() if name.startswith(GPU_DOMAIN)}


def allocatable(node: Obj) -> Amounts:
    """Of NVIDIA's resources, including those of which there are 0."""
    return _devices(dig(node, "status", "allocatable"))


def capacity(node: Obj) -> Amounts:
    return _devices(dig(node, "status", "capacity"))


def _devices(raw: object) -> Amounts:
    return {
        name: whole_of(str(amount)) or 0 for name, amount in string_keys(raw).items() if name.startswith(GPU_DOMAIN)
    }


def taints_of(node: Obj) -> tuple[Taint, ...]:
    return tuple(_converted(maps(dig(node, "spec", "taints")), Taint))


def tolerations_of(spec: object) -> tuple[Toleration, ...]:
    return tuple(_converted(maps(dig(spec, "tolerations")), Toleration))


def _converted(written: Iterable[Obj], kind: type[T]) -> Iterator[T]:
    for raw in written:
        try:
            yield msgspec.convert(raw, kind)
        except msgspec.ValidationError:
            continue


def condition(obj: Obj, kind: str) -> Obj:
    """Empty if the object does not have it."""
    return next((each for each in maps(dig(obj, "status", "conditions")) if each.get("type") == kind), {})


def quantity_of(value: object) -> Quantity:
    """0 for what is none."""
    try:
        return Quantity.parse(str(value)) if value is not None else ZERO
    except UserError:
        return ZERO


def text_of(value: object) -> str:
    """In one line, and short."""
    line = one_line(str(value)) if value else ""
    return line if len(line) <= _MOST_TEXT else f"{line[:_MOST_TEXT]}..."


def message_of(event: Obj) -> str:
    return str(event.get("message") or event.get("note") or "")


def event_words(event: Obj) -> str:
    return text_of(f"Event {event.get('reason') or ''}: {message_of(event)}")


def event_time(event: Obj) -> str:
    found = event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")
    return str(found or dig(event, "metadata", "creationTimestamp") or "")


def few(names: Iterable[str], most: int = 4) -> str:
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more

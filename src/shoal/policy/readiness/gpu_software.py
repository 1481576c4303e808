"""Questions that several readiness checks ask: nodes with GPUs, namespaces that use them, programs by their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster, device_requests, has_ended, labels_of, name_of
from shoal.policy.diagnosis.pending_pods import has_gpus
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.policy.kinds import DAEMON_SET, DEPLOYMENT, LOCAL_QUEUE, NAMESPACE, STATEFUL_SET, GroupKind
from shoal.policy.object_set import key_of
from shoal.policy.tenants.labels import TEAM_LABEL

SERVICE_MONITOR = GroupKind("monitoring.coreos.com", "ServiceMonitor")
POD_MONITOR = GroupKind("monitoring.coreos.com", "PodMonitor")

PROGRAM_KINDS = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)
_NAMES = ("app", "app.kubernetes.io/name", "app.kubernetes.io/component", "k8s-app", "name")
_SYSTEM = ("kube-", "gpu-operator", "nvidia-", "shoal-system")


def gpu_nodes(facts: DiagnosedCluster) -> list[Obj]:
    return [node for node in facts.nodes if has_gpus(node)]


def gpu_namespaces(facts: DiagnosedCluster) -> list[str]:
    """Namespaces with pods that hold or wait for GPUs, with a LocalQueue, or of a team; without those of the system."""
    found = {key_of(pod)[0] for pod in facts.pods if not has_ended(pod) and device_requests(pod)}
    found |= {key_of(queue)[0] for queue in facts.all(LOCAL_QUEUE)}
    found |= {name_of(one) for one in facts.all(NAMESPACE) if TEAM_LABEL in labels_of(one)}
    return sorted(name for name in found if not name.startswith(_SYSTEM))


def programs(facts: DiagnosedCluster, *words: str) -> list[Obj]:
    """Deployments, StatefulSets and DaemonSets that have one of the words in their name or a label with their name."""
    return [
        obj
        for kind in PROGRAM_KINDS
        for obj in facts.all(kind)
        if any(word in text for word in words for text in _named_so(obj))
    ]


def is_down(program: Obj) -> bool:
    """Whether its status says that none of its pods is ready."""
    status = string_keys(program.get("status"))
    wanted, ready = status.get("replicas"), status.get("availableReplicas")
    if program.get("kind") == "DaemonSet":
        wanted, ready = status.get("desiredNumberScheduled"), status.get("numberReady")
    return isinstance(wanted, int) and wanted > 0 and not ready


def _named_so(obj: Obj) -> Iterator[str]:
    yield name_of(obj)
    labels = labels_of(obj)
    yield from (labels[key] for key in _NAMES if key in labels)


def images_of(obj: Obj) -> list[str]:
    spec = dig(obj, "spec", "template", "spec")
    return [str(one.get("image") or "") for one in maps(dig(spec, "containers"))]


def arguments_of(obj: Obj) -> list[str]:
    spec = dig(obj, "spec", "template", "spec")
    return [
        word
        for one in maps(dig(spec, "containers"))
        for word in (*strings(one.get("command")), *strings(one.get("args")))
    ]


def tag_of(image: str) -> str:
    """Without a digest; empty if the image has none."""
    last = image.partition("@")[0].rpartition("/")[2]
    return last.partition(":")[2]


def numbers_of(version: str) -> tuple[int, ...]:
    """`v24.9.2-ubuntu` as (24, 9, 2); empty for another form."""
    first = version.removeprefix("v").partition("-")[0]
    parts = first.split(".")
    return tuple(int(part) for part in parts) if all(part.isascii() and part.isdigit() for part in parts) else ()


def texts_of(container: Obj) -> Iterator[str]:
    """Command, arguments, and the plain values of the environment."""
    yield from strings(container.get("command"))
    yield from strings(container.get("args"))
    yield from (str(one["value"]) for one in maps(container.get("env")) if isinstance(one.get("value"), str))


def has_claim(spec: Obj) -> bool:
    """Whether a volume of the pod outlives it."""
    return any("persistentVolumeClaim" in volume or "nfs" in volume or "csi" in volume for volume in _volumes(spec))


def _volumes(spec: Obj) -> list[dict[str, object]]:
    return [string_keys(volume) for volume in maps(spec.get("volumes"))]


def name_list(objects: Iterable[Obj], most: int = 4) -> str:
    found = ["/".join(part for part in key_of(obj) if part) for obj in objects]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")

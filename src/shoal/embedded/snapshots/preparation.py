"""Prepares the objects of a snapshot for another cluster: what is created, in which order, and what is left out.

Guarantees: owners come before what they own, and rules that would refuse pods (quotas, limits) come last. A pod keeps
its node. Programs of Jobs that run are simulated without an end, so that placements stay what they are until the user
changes something; an annotation `shoal.dev/run-for` is kept.

Rejected: the uids of the snapshot. An API server chooses uids itself; references to them are translated instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shoal.devices.device_ids import ids_in
from shoal.devices.names import OWN_DEVICES
from shoal.embedded.snapshots.reading import Obj

_LEFT_OUT: Mapping[str, str] = {
    "Event": "they tell of the other cluster",
    "Lease": "they are of programs of the other cluster",
    "Configuration": "`shoal up` has no configuration of Kueue",
    "Endpoints": "controllers create them",
    "EndpointSlice": "controllers create them",
    "CustomResourceDefinition": "`shoal up` has its own",
    "APIService": "their servers do not run here",
    "MutatingWebhookConfiguration": "their servers do not run here",
    "ValidatingWebhookConfiguration": "their servers do not run here",
    "ResourceSlice": "drivers of the nodes write them",
    "CSINode": "drivers of the nodes write them",
    "NodeResourceTopology": "agents of the nodes write them",
}
_FIRST = ("Namespace", "PriorityClass", "ServiceAccount", "WorkloadPriorityClass", "RuntimeClass", "StorageClass")
_RULES = ("Topology", "ResourceFlavor", "AdmissionCheck", "Cohort", "ClusterQueue", "Queue", "LocalQueue")
RECOMPUTED = frozenset({*_RULES, "Namespace", "ResourceQuota", "PodDisruptionBudget"}) | {
    *("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "CronJob"),
}
"""Kinds whose status controllers write anew."""
_LAST = ("LimitRange", "ResourceQuota", "PodDisruptionBudget")
_RUN_FOR = "shoal.dev/run-for"
_WITHOUT_END = "87600h"
_MIRROR = "kubernetes.io/config.mirror"
_OF_JOBS = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
_KEPT = ("name", "namespace", "labels", "annotations", "ownerReferences")
_OVER = ("Succeeded", "Failed")
_TOKENS = "kubernetes.io/service-account-token"


class LeftOut(NamedTuple):
    kind: str
    why: str


class Prepared(NamedTuple):
    objects: list[Obj]
    """In the order of their creation; each has the uid that it had."""
    left_out: list[LeftOut]
    made: list[Obj]
    """Those among them that others refer to and that the snapshot does not have."""


HasDevice = Callable[[str, str], bool]
"""Node, id of a device -> whether the simulated node has it."""


def prepared(objects: Iterable[Obj], has_device: HasDevice) -> Prepared:
    """Nodes are not among the objects: machines are made of them."""
    given = list(objects)
    nodes = {each["metadata"]["name"] for each in given if each["kind"] == "Node"}
    kept: list[Obj] = []
    left_out: list[LeftOut] = []
    for each in given:
        if each["kind"] == "Node":
            continue
        why = _why_not(each, nodes)
        if why:
            left_out.append(LeftOut(each["kind"], why))
            continue
        cleaned = _cleaned(each)
        if each["kind"] == "Pod" and _has_other_devices(cleaned, has_device):
            del cleaned["metadata"]["annotations"][OWN_DEVICES]
            left_out.append(LeftOut("choice of GPUs by a Pod", "the simulated nodes have other GPU ids; chosen again"))
        kept.append(cleaned)
    uids = {uid for each in kept if (uid := each["metadata"].get("uid"))}
    for each in kept:
        _drop_foreign_owners(each, uids)
    made = list(_made(kept))
    return Prepared(_ordered([*kept, *made]), left_out, made)


def with_uids(value: Any, uids: Mapping[str, str]) -> Any:
    """The same with the uids that the objects have now."""
    if isinstance(value, dict):
        return {key: with_uids(inner, uids) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_uids(inner, uids) for inner in value]
    return uids.get(value, value) if isinstance(value, str) else value


def _why_not(obj: Obj, nodes: set[str]) -> str:
    meta, spec = obj["metadata"], obj.get("spec") or {}
    if obj["kind"] in _LEFT_OUT:
        return _LEFT_OUT[obj["kind"]]
    if obj["kind"] == "Secret" and obj.get("type") == _TOKENS:
        return "tokens are of the other cluster"
    if meta.get("deletionTimestamp"):
        return "they were being deleted"
    if obj["kind"] != "Pod":
        return ""
    if _MIRROR in (meta.get("annotations") or {}):
        return "they are static pods of their nodes"
    node = spec.get("nodeName")
    return "their nodes are not in the snapshot" if node and node not in nodes else ""


def _cleaned(obj: Obj) -> Obj:
    meta = {name: obj["metadata"][name] for name in (*_KEPT, "uid", "creationTimestamp") if obj["metadata"].get(name)}
    if "annotations" in meta:
        meta["annotations"] = dict(meta["annotations"])
    made = {**obj, "metadata": meta}
    match obj["kind"]:
        case "Pod":
            made = _pod(made)
        case "Job":
            made = _job(made)
        case "PersistentVolume":
            made["spec"] = _volume(made["spec"], meta["name"])
    found: Obj = _without_end(made)
    return found


_BY_NAME = ("apiVersion", "kind", "namespace", "name")
_VOLUME_SETTINGS = frozenset(
    {
        *("capacity", "accessModes", "claimRef", "nodeAffinity", "storageClassName", "volumeMode", "mountOptions"),
        *("persistentVolumeReclaimPolicy", "volumeAttributesClassName"),
    }
)


def _volume(spec: Obj, name: str) -> Obj:
    """Bound to its claim by name. A snapshot of `shoal snapshot` does not say where the data are: they are in a folder
    that nothing reads."""
    claim = {key: value for key, value in (spec.get("claimRef") or {}).items() if key in _BY_NAME}
    made = {**spec, **({"claimRef": claim} if claim else {})}
    return made if made.keys() - _VOLUME_SETTINGS else {**made, "hostPath": {"path": f"/snapshot/{name}"}}


def _pod(pod: Obj) -> Obj:
    """A pod that runs starts again on its node; one that has ended keeps its status."""
    phase = (pod.get("status") or {}).get("phase")
    made = {key: value for key, value in pod.items() if key != "status" or phase in _OVER}
    spec = dict(pod["spec"])
    if not spec.get("priority"):
        spec.pop("priority", None)
    made["spec"] = spec
    return _annotated(made) if phase not in _OVER else made


def _has_other_devices(pod: Obj, has_device: HasDevice) -> bool:
    """Whether a scheduler has chosen devices that the node does not have here: its kubelet would refuse the pod."""
    node = pod["spec"].get("nodeName", "")
    chosen = ids_in(str((pod["metadata"].get("annotations") or {}).get(OWN_DEVICES) or ""))
    ids = [each for resources in chosen.values() for found in resources.values() for each in found]
    return bool(node and ids) and not all(has_device(node, each) for each in ids)


def _job(job: Obj) -> Obj:
    """The selector of a Job is made with its uid."""
    spec = dict(job["spec"])
    if spec.get("manualSelector"):
        return job
    spec.pop("selector", None)
    template = spec.get("template") or {}
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {key: value for key, value in (meta.get("labels") or {}).items() if key not in _OF_JOBS}
    spec["template"] = {**template, "metadata": {**meta, "creationTimestamp": None}}
    return {**job, "spec": spec}


def _without_end(value: Any) -> Any:
    """With the annotation of pods that do not end, in every template."""
    if isinstance(value, list):
        return [_without_end(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {key: _without_end(inner) for key, inner in value.items()}
    template = made.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict) and "containers" in template["spec"]:
        made["template"] = _annotated(template)
    return made


def _annotated(pod: Obj) -> Obj:
    if pod["spec"].get("restartPolicy", "Always") == "Always":
        return pod
    meta = pod.get("metadata") or {}
    return {**pod, "metadata": {**meta, "annotations": {_RUN_FOR: _WITHOUT_END, **(meta.get("annotations") or {})}}}


def _drop_foreign_owners(obj: Obj, uids: set[str]) -> None:
    """The garbage collector would delete an object whose owner does not exist."""
    owners = obj["metadata"].get("ownerReferences")
    if owners:
        kept = [each for each in owners if each.get("uid") in uids]
        obj["metadata"]["ownerReferences"] = kept


def _ordered(objects: Sequence[Obj]) -> list[Obj]:
    by_uid = {uid: each for each in objects if (uid := each["metadata"].get("uid"))}
    depths: dict[int, int] = {}

    def depth(obj: Obj) -> int:
        found = depths.get(id(obj))
        if found is None:
            # Owners in a circle exist in no cluster; one in a file must not end the program.
            depths[id(obj)] = 0
            owners = (by_uid[each["uid"]] for each in obj["metadata"].get("ownerReferences") or ())
            found = depths[id(obj)] = 1 + max(map(depth, owners), default=-1)
        return found

    def key(obj: Obj) -> tuple[int, int, str, str]:
        meta = obj["metadata"]
        return rank_of(obj["kind"]), depth(obj), str(meta.get("creationTimestamp") or ""), str(meta.get("name") or "")

    return sorted(objects, key=key)


def rank_of(kind: str) -> int:
    """Groups of kinds in their order; within a group of one kind after the other the older object comes first, because
    queues serve it first."""
    order = (*_FIRST, *_RULES)
    if kind in order:
        return order.index(kind)
    return len(order) + (1 + _LAST.index(kind) if kind in _LAST else 0)


def _made(objects: Sequence[Obj]) -> Iterator[Obj]:
    """Namespaces, service accounts and priority classes that others refer to."""
    there = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"].get("name", "")) for each in objects
    }
    wanted: dict[tuple[str, str, str], Obj] = {}
    for each in objects:
        namespace = each["metadata"].get("namespace", "")
        if namespace:
            wanted.setdefault(("Namespace", "", namespace), _object("v1", "Namespace", namespace))
        if each["kind"] != "Pod":
            continue
        spec = each["spec"]
        for account in ("default", spec.get("serviceAccountName") or "default"):
            made = _object("v1", "ServiceAccount", account, namespace)
            wanted.setdefault(("ServiceAccount", namespace, account), made)
        if spec.get("priority") and not spec.get("priorityClassName"):
            spec["priorityClassName"] = f"priority-{spec['priority']}"
        name = spec.get("priorityClassName")
        if name and not name.startswith("system-"):
            body = {"value": spec.get("priority", 0), "preemptionPolicy": spec.get("preemptionPolicy")}
            made = _object("scheduling.k8s.io/v1", "PriorityClass", name) | {
                k: v for k, v in body.items() if v is not None
            }
            wanted.setdefault(("PriorityClass", "", name), made)
    yield from (made for key, made in sorted(wanted.items(), key=lambda pair: pair[0][0]) if key not in there)


def _object(api_version: str, kind: str, name: str, namespace: str = "") -> Obj:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}

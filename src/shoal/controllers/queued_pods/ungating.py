"""Computes the patch that ungates a pod, with what its admission injects and its role in its group.

The injected fields are the same as for jobs (`queued_work/pod_set_info.py`). Fields in which a pod states its own
placement stay, and a pod that conflicts with its admission is not ungated.

Rejected: another gate until one of several topology domains is chosen, as jobs have it in their templates. Gates of
existing pods can only be removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from shoal.client.item import Item
from shoal.controllers.queued_pods.kueue_names import GATE, LWS_WORKER, POD_INDEX, ROLE_HASH, SET_INDEX
from shoal.controllers.queued_pods.membership import Pods
from shoal.controllers.queued_pods.pod_view import QueuedPod
from shoal.controllers.queued_work.domain_assignment import DomainCandidate, assign_domains
from shoal.controllers.queued_work.pod_set_info import PodSetConflictError, PodSetInfo
from shoal.units.numbers import whole_of

Obj = dict[str, Any]
_INDICES = (POD_INDEX, SET_INDEX, LWS_WORKER)


def ungate_patch(pod: Obj, info: PodSetInfo, role: str = "") -> Obj:
    """The merge patch for this version of the pod. `role` is written to pods of groups. Raises PodSetConflictError."""
    meta, spec = pod["metadata"], pod["spec"]
    annotations = dict(info.annotations)
    if role:
        annotations[ROLE_HASH] = role
    kept = [gate for gate in spec.get("schedulingGates") or () if gate.get("name") != GATE]
    added: Obj = {"schedulingGates": kept + info.gates or None}
    if info.node_selector:
        added["nodeSelector"] = _merged_selector(spec.get("nodeSelector") or {}, info.node_selector)
    present = spec.get("tolerations") or []
    missing = [one for one in info.tolerations if one not in present]
    if missing:
        added["tolerations"] = [*present, *missing]
    known = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    return {"metadata": {**known, "labels": dict(info.labels), "annotations": annotations}, "spec": added}


def per_pod_infos(info: PodSetInfo, running: Pods, held: Pods) -> Iterator[tuple[Item, PodSetInfo]]:
    """The info for each of the held pods, with its own topology domain if there are several. A pod for which no domain
    has a place, because another pod is still terminating, stays held."""
    if info.domains is None:
        yield from ((item, info) for item, _ in held)
        return
    items = {item.name: item for item, _ in held}
    # The first pod is the leader, which is in another pod set.
    before = 1 if info.name == "worker" else 0
    candidates = [_candidate(*one, before, is_held=False) for one in running]
    candidates += [_candidate(*one, before, is_held=True) for one in held]
    for name, domain in assign_domains(info.domains, candidates):
        yield items[name], structs.replace(info, gates=[], node_selector={**info.node_selector, **domain})


def _candidate(item: Item, pod: QueuedPod, before: int, *, is_held: bool) -> DomainCandidate:
    labels = pod.metadata.labels
    index = whole_of(next((labels[label] for label in _INDICES if label in labels), ""))
    rank = str(index - before) if index is not None else ""
    return DomainCandidate(item.name, item.obj()["spec"].get("nodeSelector") or {}, rank, is_held)


def _merged_selector(own: dict[str, str], added: dict[str, str]) -> dict[str, str]:
    for key, value in added.items():
        if own.get(key, value) != value:
            raise PodSetConflictError(f"conflict for key={key}, value1={own[key]}, value2={value}")
    return {**added, **own}

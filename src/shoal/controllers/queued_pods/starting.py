"""What a pod gets when it is let go: what its admission puts on pods of its set, and its role in its group.

What is put on is what jobs get (`queued_work/pod_set_info.py`). A pod that says itself where it wants to be keeps
that, and one that contradicts its admission is not let go.

Rejected: a gate until somebody chooses among several domains, as jobs put it into their templates. Gates of pods that
are there can only be taken away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from shoal.controllers.queued_pods.membership import Pods
from shoal.controllers.queued_pods.pod_sight import QueuedPod
from shoal.controllers.queued_pods.words import GATE, LWS_WORKER, POD_INDEX, ROLE_HASH, SET_INDEX
from shoal.controllers.queued_work.domain_assignment import DomainCandidate, assign_domains
from shoal.controllers.queued_work.pod_set_info import PodSetConflictError, PodSetInfo
from shoal.store.live.item import Item
from shoal.units.numbers import whole_of

Obj = dict[str, Any]
_INDICES = (POD_INDEX, SET_INDEX, LWS_WORKER)


def let_go(pod: Obj, infos: PodSetInfo, role: str = "") -> Obj:
    """The merge patch; it holds for that version of the pod alone. `role` is noted for pods of groups. Raises
    PodSetConflictError."""
    meta, spec = pod["metadata"], pod["spec"]
    notes = dict(infos.annotations)
    if role:
        notes[ROLE_HASH] = role
    kept = [gate for gate in spec.get("schedulingGates") or () if gate.get("name") != GATE]
    added: Obj = {"schedulingGates": kept + infos.gates or None}
    if infos.node_selector:
        added["nodeSelector"] = _joined(spec.get("nodeSelector") or {}, infos.node_selector)
    present = spec.get("tolerations") or []
    more = [one for one in infos.tolerations if one not in present]
    if more:
        added["tolerations"] = [*present, *more]
    known = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    return {"metadata": {**known, "labels": dict(infos.labels), "annotations": notes}, "spec": added}


def into_domains(infos: PodSetInfo, running: Pods, held: Pods) -> Iterator[tuple[Item, PodSetInfo]]:
    """What each of the held pods is let go with: of several domains its own. One for which no domain has room, since
    somebody who is about to go is still there, waits."""
    if infos.domains is None:
        yield from ((item, infos) for item, _ in held)
        return
    items = {item.name: item for item, _ in held}
    # The leader is the first of all, whose set is another.
    before = 1 if infos.name == "worker" else 0
    seekers = [_seeker(*one, before, is_held=False) for one in running]
    seekers += [_seeker(*one, before, is_held=True) for one in held]
    for name, domain in assign_domains(infos.domains, seekers):
        yield items[name], structs.replace(infos, gates=[], node_selector={**infos.node_selector, **domain})


def _seeker(item: Item, pod: QueuedPod, before: int, *, is_held: bool) -> DomainCandidate:
    labels = pod.metadata.labels
    index = whole_of(next((labels[label] for label in _INDICES if label in labels), ""))
    rank = str(index - before) if index is not None else ""
    return DomainCandidate(item.name, item.obj()["spec"].get("nodeSelector") or {}, rank, is_held)


def _joined(own: dict[str, str], added: dict[str, str]) -> dict[str, str]:
    for key, value in added.items():
        if own.get(key, value) != value:
            raise PodSetConflictError(f"conflict for key={key}, value1={own[key]}, value2={value}")
    return {**added, **own}

"""Removes the topology gate from the pods of a Workload with several topology domains: each pod gets the node selector
of one domain.

Pods that Shoal places take the places that were kept for them and need no gate. For other schedulers the pods are held
until they have different node selectors, which any scheduler follows.

Guarantees: a pod whose own node selector names a domain gets that domain or stays gated; a pod that cannot be patched
delays no other; all state is in the API objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from shoal.api.kueue import Workload
from shoal.client.context import Context
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import PODS
from shoal.client.loop import Loop
from shoal.controllers.queued_work.domain_assignment import DomainCandidate, assign_domains
from shoal.controllers.queues.pod_gates.gated_pods import GatedPod, gated_pod, patch_all
from shoal.store.queues.manifest_queues import WORKLOAD_ANNOTATION
from shoal.store.queues.non_tas_usage import POD_SET_LABEL

GATE = "kueue.x-k8s.io/topology"
_GATE_BYTES = GATE.encode()
_MARK = WORKLOAD_ANNOTATION.encode()
_INDEX = "workload"
_BATCH_S = 0.01
"""Changes within this time are handled together."""


class TopologyGates:
    """`workload_of` returns a Workload by its key; `is_ours` says whether Shoal decides about admission."""

    def __init__(
        self, context: Context, workload_of: Callable[[str], Workload | None], is_ours: Callable[[], bool]
    ) -> None:
        self._context = context
        self._workload_of = workload_of
        self._is_ours = is_ours
        self._loop = Loop(context, self._open)
        self._loop.need(PODS)
        self._informer = context.informers.of(PODS)
        self._informer.on_change(self._changed)

    def wake(self, workload: str) -> None:
        """The Workload was admitted or got other domains."""
        namespace, _, name = workload.partition("/")
        self._loop.wake((namespace, name))

    async def run(self) -> None:
        await self._loop.run()

    # internals

    def _changed(self, before: Item | None, after: Item | None) -> None:
        """A gated pod was created, or a pod with a domain was deleted."""
        item = after or before
        if item is not None and (_GATE_BYTES in item.data or (after is None and _MARK in item.data)):
            for name in _workload_keys(item):
                self._loop.wake((item.namespace, name.partition("/")[2]), _BATCH_S)

    async def _open(self, key: Key) -> float | None:
        items = self._informer.index(_INDEX, _workload_keys)["/".join(key)]
        pods = [(item, gated_pod(item)) for item in items]
        if not self._is_ours() or not any(pod.has_gate(GATE) for _, pod in pods):
            return None
        workload = self._workload_of("/".join(key))
        if workload is None or not workload.status.is_true("Admitted") or workload.status.is_true("Evicted"):
            return None
        await patch_all(self._context, patches(workload, pods))
        return None


def patches(workload: Workload, pods: Sequence[tuple[Item, GatedPod]]) -> Iterator[tuple[Item, Obj]]:
    """Patches that remove the gates of these pods, as far as their domains have places left."""
    admission = workload.status.admission
    requests = {each.name: each.topology_request for each in workload.spec.pod_sets}
    for each in admission.pod_set_assignments if admission is not None else ():
        assignment = each.topology_assignment
        if assignment is None:
            continue
        request = requests.get(each.name)
        label = (request.pod_index_label if request is not None else None) or ""
        members = {
            pod.metadata.name: (item, pod)
            for item, pod in pods
            if pod.metadata.labels.get(POD_SET_LABEL, "") in {"", each.name} and not _has_ended(pod)
        }
        candidates = [
            DomainCandidate(
                name, pod.spec.node_selector, pod.metadata.labels.get(label, "") if label else "", pod.has_gate(GATE)
            )
            for name, (_, pod) in members.items()
        ]
        for name, domain in assign_domains(assignment, candidates):
            item, pod = members[name]
            yield item, _ungated(item, pod, domain)


def _has_ended(pod: GatedPod) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.is_finished


def _ungated(item: Item, pod: GatedPod, domain: Mapping[str, str]) -> Obj:
    guard = {"uid": item.uid, "resourceVersion": str(item.version)}
    return {"metadata": guard, "spec": {"schedulingGates": pod.gates_without(GATE), "nodeSelector": dict(domain)}}


def _workload_keys(item: Item) -> list[str]:
    if _MARK not in item.data:
        return []
    try:
        name = gated_pod(item).metadata.annotations.get(WORKLOAD_ANNOTATION, "")
    except msgspec.DecodeError:
        return []
    return [f"{item.namespace}/{name}"] if name else []

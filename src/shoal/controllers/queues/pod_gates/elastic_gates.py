"""Removes the scheduling gate from the pods by which an elastic job has grown, once the Workload of the new size is
admitted.

All pods of such a job are created with the gate. It is removed from as many pods as the admitted Workload allows; pods
that end free places for others. Each pod without the gate is annotated with the present Workload of the job, whichever
Workload it was created under.

Guarantees: there are never more pods without the gate than are admitted, terminating pods included; all state is in the
API objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from shoal.api.kueue import Workload
from shoal.client.context import Context
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import PODS
from shoal.client.loop import Loop
from shoal.controllers.queued_work.kueue_names import ELASTIC, SLICE_NAME
from shoal.controllers.queues.pod_gates.gated_pods import GatedPod, gated_pod, patch_all
from shoal.store.queues.manifest_queues import WORKLOAD_ANNOTATION
from shoal.store.queues.non_tas_usage import POD_SET_LABEL

_MARK = SLICE_NAME.encode()
_INDEX = "slices"
_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_DIGITS = 9
_BATCH_S = 0.01
"""Changes within this time are handled together."""
Member = tuple[Item, GatedPod]


class ElasticGates:
    """`workload_of` returns a Workload by its key, `replacement` the key of the Workload that replaced it, or its own;
    `is_ours` says whether Shoal decides about admission."""

    def __init__(
        self,
        context: Context,
        workload_of: Callable[[str], Workload | None],
        replacement: Callable[[str], str],
        is_ours: Callable[[], bool],
    ) -> None:
        self._context = context
        self._workload_of = workload_of
        self._replacement = replacement
        self._is_ours = is_ours
        self._loop = Loop(context, self._open)
        self._loop.need(PODS)
        self._informer = context.informers.of(PODS)
        self._informer.on_change(self._changed)

    def wake(self, workload: str) -> None:
        """The Workload was admitted or resized."""
        found = self._workload_of(workload)
        name = found.metadata.annotations.get(SLICE_NAME) if found is not None else None
        if name:
            self._loop.wake((workload.partition("/")[0], name))

    async def run(self) -> None:
        await self._loop.run()

    # internals

    def _changed(self, before: Item | None, after: Item | None) -> None:
        for item in (after, before):
            if item is not None and (slices := _slice_keys(item)):
                if before is not None and after is not None and _is_alike(before, after):
                    return
                for name in slices:
                    self._loop.wake((item.namespace, name.partition("/")[2]), _BATCH_S)
                return

    async def _open(self, key: Key) -> None:
        slice_key = "/".join(key)
        members = [(item, gated_pod(item)) for item in self._informer.index(_INDEX, _slice_keys)[slice_key]]
        if not members or not self._is_ours():
            return
        workload = self._admitted_workload(slice_key, members)
        if workload is not None:
            await patch_all(self._context, patches(workload, members))

    def _admitted_workload(self, slice_key: str, members: Sequence[Member]) -> Workload | None:
        """The admitted Workload of the job. Pods name later Workloads than the first one, which may be deleted."""
        namespace = slice_key.partition("/")[0]
        named = (pod.metadata.annotations.get(WORKLOAD_ANNOTATION, "") for _, pod in members)
        for key in dict.fromkeys(map(self._replacement, (slice_key, *(f"{namespace}/{name}" for name in named)))):
            found = self._workload_of(key)
            status = None if found is None else found.status
            if status is not None and status.is_true("Admitted"):
                return None if status.is_true("Evicted") or status.is_true("Finished") else found
        return None


def patches(workload: Workload, members: Iterable[Member]) -> Iterator[tuple[Item, Obj]]:
    """Patches that remove the gate as far as the admission allows, and that annotate all pods without the gate with the
    Workload."""
    free, name = _admitted_counts(workload), workload.metadata.name
    running = [one for one in members if not one[1].is_finished]
    free.subtract(_pod_set_of(pod, free) for _, pod in running if not pod.has_gate(ELASTIC))
    for item, pod in sorted(running, key=lambda one: _order(one[1])):
        body: Obj = {"metadata": {"uid": item.uid, "resourceVersion": str(item.version)}}
        if pod.has_gate(ELASTIC):
            pod_set = _pod_set_of(pod, free)
            if free[pod_set] <= 0:
                continue
            free[pod_set] -= 1
            body["spec"] = {"schedulingGates": pod.gates_without(ELASTIC)}
        elif pod.metadata.annotations.get(WORKLOAD_ANNOTATION) == name:
            continue
        body["metadata"]["annotations"] = {WORKLOAD_ANNOTATION: name}
        yield item, body


def _admitted_counts(workload: Workload) -> Counter[str]:
    """By pod set, how many pods are both wanted and admitted."""
    admission = workload.status.admission
    assigned = {each.name: each.count for each in admission.pod_set_assignments} if admission is not None else {}
    reclaimable = {each.name: each.count for each in workload.status.reclaimable_pods}
    found = Counter[str]()
    for each in workload.spec.pod_sets:
        admitted = assigned.get(each.name, 0)
        count = min(each.count, each.count if admitted is None else admitted)
        found[each.name] = count - reclaimable.get(each.name, 0)
    return found


def _pod_set_of(pod: GatedPod, known: Counter[str]) -> str:
    label = pod.metadata.labels.get(POD_SET_LABEL, "")
    return label if label in known or len(known) != 1 else next(iter(known))


def _order(pod: GatedPod) -> tuple[int, str]:
    index = pod.metadata.annotations.get(_COMPLETION_INDEX, "")
    return (int(index) if index.isdecimal() and len(index) <= _DIGITS else 0, pod.metadata.name)


def _slice_keys(item: Item) -> list[str]:
    if _MARK not in item.data:
        return []
    try:
        name = gated_pod(item).metadata.annotations.get(SLICE_NAME, "")
    except msgspec.DecodeError:
        return []
    return [f"{item.namespace}/{name}"] if name else []


def _is_alike(before: Item, after: Item) -> bool:
    """Most changes of a pod do not matter here."""
    try:
        return _relevant(gated_pod(before)) == _relevant(gated_pod(after))
    except msgspec.DecodeError:
        return False


def _relevant(pod: GatedPod) -> tuple[object, ...]:
    annotations = pod.metadata.annotations
    return (
        annotations.get(SLICE_NAME),
        annotations.get(WORKLOAD_ANNOTATION),
        annotations.get(_COMPLETION_INDEX),
        pod.metadata.labels.get(POD_SET_LABEL),
        pod.has_gate(ELASTIC),
        pod.is_finished,
    )

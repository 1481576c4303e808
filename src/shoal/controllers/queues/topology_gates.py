"""Opens the gate of pods whose workload has several domains: each gets one of them as its node selector.

Pods that Shoal places take the places that were kept for them and need no gate. Others are held until they can be told
apart by their selectors: any scheduler obeys these.

Promises: a pod whose own selector names a domain gets that one or waits; one pod that may not be changed keeps no other
waiting; nothing is remembered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec import field

from shoal.api.kueue import Workload
from shoal.controllers.queued_work.domains import Seeker, shared_out
from shoal.store.live.context import Context
from shoal.store.live.item import Item, Key, Obj
from shoal.store.live.kind import PODS
from shoal.store.live.loop import Loop
from shoal.store.live.port import Patch
from shoal.store.live.refusals import RefusedError
from shoal.store.queues.room import POD_SET_LABEL
from shoal.store.queues.world import WORKLOAD_ANNOTATION

_log = logging.getLogger("shoal.queues")
GATE = "kueue.x-k8s.io/topology"
_GATE_BYTES = GATE.encode()
_MARK = WORKLOAD_ANNOTATION.encode()
_INDEX = "workload"
_TOGETHER_S = 0.01
_OVER = frozenset({"Succeeded", "Failed"})


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    deletion_timestamp: str | None = None


class _Gate(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_selector: dict[str, str] = field(default_factory=dict)
    scheduling_gates: tuple[_Gate, ...] = ()


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)

    @property
    def is_held(self) -> bool:
        return any(gate.name == GATE for gate in self.spec.scheduling_gates)

    @property
    def is_over(self) -> bool:
        return self.metadata.deletion_timestamp is not None or self.status.phase in _OVER


_pods = msgspec.json.Decoder(_Pod)


class TopologyGates:
    """`whole` gives a Workload by its key; `is_ours` tells whether admission is decided here."""

    def __init__(self, context: Context, whole: Callable[[str], Workload | None], is_ours: Callable[[], bool]) -> None:
        self._context = context
        self._whole = whole
        self._is_ours = is_ours
        self._loop = Loop(context, self._open)
        self._loop.need(PODS)
        self._informer = context.informers.of(PODS)
        self._informer.on_change(self._changed)

    def stir(self, workload: str) -> None:
        """It is admitted, or got other domains."""
        namespace, _, name = workload.partition("/")
        self._loop.wake((namespace, name))

    async def run(self) -> None:
        await self._loop.run()

    # Inside

    def _changed(self, before: Item | None, after: Item | None) -> None:
        """A pod that is held came, or one that had a domain is gone."""
        item = after or before
        if item is not None and (_GATE_BYTES in item.data or (after is None and _MARK in item.data)):
            for name in _workload_of(item):
                self._loop.wake((item.namespace, name.partition("/")[2]), _TOGETHER_S)

    async def _open(self, key: Key) -> float | None:
        items = self._informer.index(_INDEX, _workload_of)["/".join(key)]
        pods = [(item, _pods.decode(item.data)) for item in items]
        if not self._is_ours() or not any(pod.is_held for _, pod in pods):
            return None
        workload = self._whole("/".join(key))
        if workload is None or not workload.status.is_true("Admitted") or workload.status.is_true("Evicted"):
            return None
        refused: RefusedError | None = None
        for item, patch in patches(workload, pods):
            try:
                await self._context.api.patch(PODS, item.namespace, item.name, Patch("merge", patch))
            except RefusedError as error:
                refused = error
        if refused is not None:
            # Later again, and later each time.
            raise refused
        return None


def patches(workload: Workload, pods: Sequence[tuple[Item, _Pod]]) -> Iterator[tuple[Item, Obj]]:
    """What opens the gates of these pods, as far as there is room for them."""
    admission = workload.status.admission
    wishes = {each.name: each.topology_request for each in workload.spec.pod_sets}
    for each in admission.pod_set_assignments if admission is not None else ():
        assignment = each.topology_assignment
        if assignment is None:
            continue
        wish = wishes.get(each.name)
        label = (wish.pod_index_label if wish is not None else None) or ""
        mine = {
            pod.metadata.name: (item, pod)
            for item, pod in pods
            if pod.metadata.labels.get(POD_SET_LABEL, "") in {"", each.name} and not pod.is_over
        }
        seekers = [
            Seeker(name, pod.spec.node_selector, pod.metadata.labels.get(label, "") if label else "", pod.is_held)
            for name, (_, pod) in mine.items()
        ]
        for name, domain in shared_out(assignment, seekers):
            item, pod = mine[name]
            yield item, _opened(item, pod, domain)


def _opened(item: Item, pod: _Pod, domain: Mapping[str, str]) -> Obj:
    gates = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != GATE]
    known = {"uid": item.uid, "resourceVersion": str(item.version)}
    return {"metadata": known, "spec": {"schedulingGates": gates or None, "nodeSelector": dict(domain)}}


def _workload_of(item: Item) -> list[str]:
    if _MARK not in item.data:
        return []
    try:
        name = _pods.decode(item.data).metadata.annotations.get(WORKLOAD_ANNOTATION, "")
    except msgspec.DecodeError:
        return []
    return [f"{item.namespace}/{name}"] if name else []

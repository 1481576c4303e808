"""Opens the gate of pods by which a running job has grown, once the workload of its new size is admitted.

All pods of such a job are made with the gate, and are let go as far as its admitted workload has room: those that end
make room for others. Whichever of the job's workloads a pod was made under, from then on it says the present one.

Promises: never more pods are let go than are admitted, a pod that is ending counted; nothing is remembered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec import field

from shoal.api.kueue import Workload
from shoal.controllers.queued_work.words import ELASTIC, SLICE_NAME
from shoal.store.live.context import Context
from shoal.store.live.item import Item, Key, Obj, Seen
from shoal.store.live.kind import PODS
from shoal.store.live.loop import Loop
from shoal.store.live.port import Patch
from shoal.store.live.refusals import RefusedError
from shoal.store.queues.room import POD_SET_LABEL
from shoal.store.queues.world import WORKLOAD_ANNOTATION

_MARK = SLICE_NAME.encode()
_INDEX = "slices"
_NUMBER = "batch.kubernetes.io/job-completion-index"
_DIGITS = 9
_TOGETHER_S = 0.01
_OVER = frozenset({"Succeeded", "Failed"})


class _Meta(msgspec.Struct, gc=False):
    name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class _Gate(msgspec.Struct, gc=False):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel", gc=False):
    scheduling_gates: tuple[_Gate, ...] = ()


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class _Pod(msgspec.Struct, gc=False):
    metadata: _Meta
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)

    @property
    def is_held(self) -> bool:
        return any(gate.name == ELASTIC for gate in self.spec.scheduling_gates)

    @property
    def turn(self) -> tuple[int, str]:
        number = self.metadata.annotations.get(_NUMBER, "")
        return (int(number) if number.isdecimal() and len(number) <= _DIGITS else 0, self.metadata.name)

    @property
    def is_live(self) -> bool:
        return self.status.phase not in _OVER

    @property
    def matter(self) -> tuple[object, ...]:
        """Of most changes of a pod nothing matters here."""
        notes = self.metadata.annotations
        said = notes.get(SLICE_NAME), notes.get(WORKLOAD_ANNOTATION), notes.get(_NUMBER)
        return (*said, self.metadata.labels.get(POD_SET_LABEL), self.is_held, self.is_live)


_pod: Seen[_Pod] = Seen(_Pod)
Member = tuple[Item, _Pod]


class ElasticGates:
    """`whole` gives a Workload by its key, `heir` the key of the one that took a workload's place, or its own;
    `is_ours` tells whether admission is decided here."""

    def __init__(
        self,
        context: Context,
        whole: Callable[[str], Workload | None],
        heir: Callable[[str], str],
        is_ours: Callable[[], bool],
    ) -> None:
        self._context = context
        self._whole = whole
        self._heir = heir
        self._is_ours = is_ours
        self._loop = Loop(context, self._open)
        self._loop.need(PODS)
        self._informer = context.informers.of(PODS)
        self._informer.on_change(self._changed)

    def stir(self, workload: str) -> None:
        """It is admitted, or of another size."""
        found = self._whole(workload)
        name = found.metadata.annotations.get(SLICE_NAME) if found is not None else None
        if name:
            self._loop.wake((workload.partition("/")[0], name))

    async def run(self) -> None:
        await self._loop.run()

    # Inside

    def _changed(self, before: Item | None, after: Item | None) -> None:
        for item in (after, before):
            if item is not None and (chains := _chain_of(item)):
                if before is not None and after is not None and _is_alike(before, after):
                    return
                for name in chains:
                    self._loop.wake((item.namespace, name.partition("/")[2]), _TOGETHER_S)
                return

    async def _open(self, key: Key) -> None:
        chain = "/".join(key)
        members = [(item, _pod(item)) for item in self._informer.index(_INDEX, _chain_of)[chain]]
        if not members or not self._is_ours():
            return
        workload = self._present(chain, members)
        if workload is None:
            return
        refused: RefusedError | None = None
        for item, patch in patches(workload, members):
            try:
                await self._context.api.patch(PODS, item.namespace, item.name, Patch("merge", patch))
            except RefusedError as error:
                refused = error
        if refused is not None:
            # Later again, and later each time.
            raise refused

    def _present(self, chain: str, members: Sequence[Member]) -> Workload | None:
        """The one that is admitted. Pods know later ones than the first, which may be gone."""
        namespace = chain.partition("/")[0]
        named = (pod.metadata.annotations.get(WORKLOAD_ANNOTATION, "") for _, pod in members)
        for key in dict.fromkeys(map(self._heir, (chain, *(f"{namespace}/{name}" for name in named)))):
            found = self._whole(key)
            status = None if found is None else found.status
            if status is not None and status.is_true("Admitted"):
                return None if status.is_true("Evicted") or status.is_true("Finished") else found
        return None


def patches(workload: Workload, members: Iterable[Member]) -> Iterator[tuple[Item, Obj]]:
    """What lets pods go as far as there is room, and has all that are let go say the present workload."""
    room, name = _room(workload), workload.metadata.name
    live = [one for one in members if one[1].is_live]
    room.subtract(_set_of(pod, room) for _, pod in live if not pod.is_held)
    for item, pod in sorted(live, key=lambda one: one[1].turn):
        body: Obj = {"metadata": {"uid": item.uid, "resourceVersion": str(item.version)}}
        if pod.is_held:
            which = _set_of(pod, room)
            if room[which] <= 0:
                continue
            room[which] -= 1
            left = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != ELASTIC]
            body["spec"] = {"schedulingGates": left or None}
        elif pod.metadata.annotations.get(WORKLOAD_ANNOTATION) == name:
            continue
        body["metadata"]["annotations"] = {WORKLOAD_ANNOTATION: name}
        yield item, body


def _room(workload: Workload) -> Counter[str]:
    """Pods by set, as far as they are both wanted and admitted."""
    admission = workload.status.admission
    given = {each.name: each.count for each in admission.pod_set_assignments} if admission is not None else {}
    over = {each.name: each.count for each in workload.status.reclaimable_pods}
    found = Counter[str]()
    for each in workload.spec.pod_sets:
        admitted = given.get(each.name, 0)
        found[each.name] = min(each.count, each.count if admitted is None else admitted) - over.get(each.name, 0)
    return found


def _set_of(pod: _Pod, known: Counter[str]) -> str:
    said = pod.metadata.labels.get(POD_SET_LABEL, "")
    return said if said in known or len(known) != 1 else next(iter(known))


def _chain_of(item: Item) -> list[str]:
    if _MARK not in item.data:
        return []
    try:
        name = _pod(item).metadata.annotations.get(SLICE_NAME, "")
    except msgspec.DecodeError:
        return []
    return [f"{item.namespace}/{name}"] if name else []


def _is_alike(before: Item, after: Item) -> bool:
    try:
        return _pod(before).matter == _pod(after).matter
    except msgspec.DecodeError:
        return False

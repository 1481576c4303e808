"""Indexes the objects that gangs are read from: group objects of every ecosystem, Workloads with groups, and the
controllers of pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from shoal.api.decode import Document
from shoal.api.pod import WorkloadReference
from shoal.client.informer import Informer
from shoal.client.informers import Informers
from shoal.client.item import Item
from shoal.client.kind import DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS, Kind
from shoal.store.object_faults import UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.store.pod_makers import GANG, KAI_MINIMUM, VOLCANO_MINIMUM, Owner
from shoal.store.replicas import KUEUE_QUEUE_LABEL
from shoal.store.watched.reading import document_of
from shoal.units.errors import UserError

MAKERS = (JOBS, REPLICA_SETS, STATEFUL_SETS, DEPLOYMENTS)
_OWN = GANG.encode()
_MARKS = (
    _OWN,
    *map(str.encode, (VOLCANO_MINIMUM, KAI_MINIMUM, KUEUE_QUEUE_LABEL, "kueue.x-k8s.io/podset-", "kai.scheduler/")),
)


class GangObjects(NamedTuple):
    """The key of pods that may form a gang: the name of a group, or an owner."""

    group: str = ""
    owner: Owner = ("", "", "")


class _Reference(msgspec.Struct, gc=False):
    kind: str = ""
    name: str = ""
    controller: bool = False


class _GroupMeta(msgspec.Struct, rename="camel", gc=False):
    labels: msgspec.Raw = msgspec.Raw()
    annotations: msgspec.Raw = msgspec.Raw()
    owner_references: tuple[_Reference, ...] = ()


class _GroupStatus(msgspec.Struct, rename="camel", gc=False):
    succeeded: int = 0
    failed_indexes: str = ""


class _GroupHead(msgspec.Struct, gc=False):
    """The relevant part of an object, without its status, which changes every few seconds."""

    metadata: _GroupMeta = msgspec.field(default_factory=_GroupMeta)
    spec: msgspec.Raw = msgspec.Raw()
    status: _GroupStatus = msgspec.field(default_factory=_GroupStatus)

    def mark(self) -> int:
        meta, status = self.metadata, self.status
        counted = status.succeeded, status.failed_indexes
        return hash((bytes(meta.labels), bytes(meta.annotations), bytes(self.spec), counted))


class _Maker(msgspec.Struct, frozen=True):
    is_marked: bool
    above: Owner | None
    mark: int


_heads = msgspec.json.Decoder(_GroupHead)


class GroupObjects:
    def __init__(self, informers: Informers, troubles: ObjectFaults, stir: Callable[[], None]) -> None:
        self._informers = informers
        self._troubles = troubles
        self._stir = stir
        self._groups: list[Informer] = []
        self._workloads: Informer | None = None
        self._makers: dict[str, Informer] = {}
        self._known: dict[Owner, _Maker] = {}
        """Owners with relevant annotations, or with an owner of their own."""
        self._of_workload: dict[str, dict[GangObjects, None]] = {}
        self._workload_of: dict[GangObjects, str] = {}
        self._changed: dict[GangObjects, None] = {}
        self._moved: dict[Owner, Owner | None] = {}

    def follow(self) -> None:
        for kind in MAKERS:
            self.follow_makers(self._informers.of(kind))

    def follow_groups(self, groups: Informer) -> None:
        self._groups.append(groups)
        groups.on_change(self._group_changed)

    def follow_workloads(self, workloads: Informer) -> None:
        """Kubernetes' own Workload, which contains groups."""
        self._workloads = workloads
        workloads.on_change(self._workload_changed)

    def follow_makers(self, makers: Informer) -> None:
        kind = makers.kind.name
        self._makers[kind] = makers
        makers.on_change(lambda before, after: self._maker_changed(kind, before, after))

    # -- event handlers
    # ----------------------------------------------------------------------------------------------------

    def _group_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None and not _is_same(before, after):
            self._changed[GangObjects(f"{item.namespace}/{item.name}")] = None
            self._stir()

    def _workload_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None and not _is_same(before, after):
            self._changed |= self._of_workload.get(f"{item.namespace}/{item.name}", {})
            self._stir()

    def _maker_changed(self, kind: str, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        owner = item.namespace, kind, item.name
        was, now = self._known.get(owner), None if after is None else _maker(after)
        if now is not None:
            self._known[owner] = now
        else:
            self._known.pop(owner, None)
        above = was.above if was is not None else None
        if above != (now.above if now is not None else None):
            self._moved.setdefault(owner, above)
        if was != now:
            self._changed[GangObjects(owner=owner)] = None
            self._stir()

    def take_changed(self) -> list[GangObjects]:
        changed, self._changed = self._changed, {}
        return list(changed)

    def take_moved(self) -> dict[Owner, Owner | None]:
        """Owners whose own owner has changed, with the former owner."""
        moved, self._moved = self._moved, {}
        return moved

    # -- queries -----------------------------------------------------------------------------------------------------

    def top(self, owner: Owner) -> Owner:
        """The owner of the owner, if it has one."""
        maker = self._known.get(owner)
        return owner if maker is None or maker.above is None else maker.above

    def is_marked(self, owner: Owner) -> bool:
        maker = self._known.get(owner)
        return maker is not None and maker.is_marked

    def is_there(self, gang: GangObjects) -> bool:
        namespace, _, name = gang.group.partition("/")
        return any(informer.get(namespace, name) is not None for informer in self._groups)

    def makers(self, owners: Iterable[Owner]) -> list[Document]:
        """These controllers, as far as they exist."""
        return [
            document
            for namespace, kind, name in owners
            if (makers := self._makers.get(kind)) is not None
            for document in self._read([makers], namespace, name)
        ]

    def groups(self, gang: GangObjects, reference: WorkloadReference | None) -> list[Document]:
        """Group objects of that name. `reference`: the reference of the pods to their Workload."""
        namespace, _, name = gang.group.partition("/")
        found = self._read(self._groups, namespace, name)
        if reference is not None:
            self._note_workload(gang, f"{namespace}/{reference.name}")
            found += self._read([self._workloads] if self._workloads is not None else [], namespace, reference.name)
        return found

    def forget(self, gang: GangObjects) -> None:
        """Forget the group: it has no members any more."""
        self._note_workload(gang, "")

    def _note_workload(self, gang: GangObjects, workload: str) -> None:
        before = self._workload_of.pop(gang, "")
        if before:
            del self._of_workload[before][gang]
            if not self._of_workload[before]:
                del self._of_workload[before]
        if workload:
            self._workload_of[gang] = workload
            self._of_workload.setdefault(workload, {})[gang] = None

    def _read(self, informers: list[Informer], namespace: str, name: str) -> list[Document]:
        found = []
        for informer in informers:
            item = informer.get(namespace, name)
            if item is not None:
                found.append(document_of(informer.kind, item))
        return found

    def complain(self, error: UserError) -> None:
        """Report the fault on its object."""
        for kind, item in self._meant(error.where.obj):
            key = f"{item.namespace}/{item.name}"
            self._troubles.put(ObjectFault(kind, key, item.uid, UNREADABLE, message_of(error)))

    def praise(self, documents: Iterable[Document]) -> None:
        """The objects are valid: remove their faults."""
        for document in documents if self._troubles.has_any else ():
            for kind, item in self._meant(document.where.obj):
                self._troubles.settle(kind, f"{item.namespace}/{item.name}")

    def _meant(self, obj: str) -> Iterator[tuple[Kind, Item]]:
        """The objects of that description: `PodGroup default/train`."""
        name_of_kind, _, key = obj.partition(" ")
        namespace, _, name = key.rpartition("/")
        known = [*self._groups, *self._makers.values()]
        for informer in known if self._workloads is None else [*known, self._workloads]:
            item = informer.get(namespace, name) if informer.kind.name == name_of_kind else None
            if item is not None:
                yield informer.kind, item


def _is_same(before: Item | None, after: Item | None) -> bool:
    if before is None or after is None:
        return False
    try:
        return _heads.decode(before.data).mark() == _heads.decode(after.data).mark()
    except msgspec.DecodeError:
        return False


def _maker(item: Item) -> _Maker | None:
    """None for an object that cannot affect a gang."""
    head = _heads.decode(item.data)
    meta = head.metadata
    written = bytes(meta.labels) + bytes(meta.annotations)
    is_marked = any(mark in written for mark in _MARKS)
    above = next((one for one in meta.owner_references if one.controller), None)
    # An owner that is annotated as a gang is used instead of its own owner.
    is_below = above is not None and _OWN not in bytes(meta.annotations)
    owner = (item.namespace, above.kind, above.name) if above is not None and is_below else None
    return _Maker(is_marked, owner, head.mark() if is_marked else 0) if is_marked or owner is not None else None

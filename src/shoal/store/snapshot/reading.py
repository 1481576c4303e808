"""Takes a snapshot of a live cluster: its objects, kind by kind, each without confidential content.

Guarantees: the same cluster gives the same snapshot, in whatever order the server lists; a kind that the user may not
read is reported and left out, unless no decision is possible without it; an object that no command could read is
reported and left out, so that one invalid object does not prevent a snapshot.

A snapshot is not of one moment: the cluster changes while kinds are read. Pods come last, so that the objects that they
refer to are known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

import msgspec

from shoal.api.budget_report import CONFIG_MAP, REPORT_KIND, REPORT_VERSION
from shoal.api.decode import MAX_BYTES, Document, read
from shoal.api.kueue.config_map import unwrapped
from shoal.api.kueue.configuration import Configuration
from shoal.api.kueue.conversion import V1BETA2
from shoal.api.run_configuration import (
    IN_USE,
    QUEUES_IN_USE,
    RUN_KIND,
    RUN_VERSION,
    LeaderElectionRules,
    RunConfiguration,
)
from shoal.api.wire import to_json
from shoal.api.yaml_out import to_yaml
from shoal.client.item import Item
from shoal.client.kind import CONFIG_MAPS, LEASES, PODS, Kind
from shoal.client.kueue_versions import relabelled
from shoal.client.port import Api
from shoal.client.presence import KUEUE, is_renewed
from shoal.client.refusals import ForbiddenError, NotFoundError, RefusedError
from shoal.client.served import answering
from shoal.store.snapshot.kinds import NEEDED, present
from shoal.store.snapshot.redaction import Obj, redacted
from shoal.store.watched.cost_budgets import ReportMap, report_in
from shoal.store.watched.queue_configuration import NAME as KUEUE_CONFIG
from shoal.units.errors import UserError, Where, one_line

T = TypeVar("T")
_AHEAD, _BETWEEN, _BEHIND = b'{"apiVersion":"v1","kind":"List","items":[\n', b",\n", b"\n]}\n"


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    line: bytes
    """The object in JSON."""
    document: Document
    """The same object as commands read it."""


@dataclass(frozen=True, slots=True)
class QueueRuling:
    """The configuration of the queues in the cluster."""

    namespace: str = KUEUE.namespace
    """The namespace of Kueue's configuration. A ConfigMap of its name in another namespace is ignored."""
    given: Configuration | None = None
    """A configuration that replaces that of the cluster."""
    own: RunConfiguration | None = None
    """Of `shoal run`; None: the one that its leader has written on its Lease."""


_USUAL = QueueRuling()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """In the order of kinds, then by namespace and name."""

    entries: list[SnapshotEntry] = field(default_factory=list, repr=False)
    notes: list[str] = field(default_factory=list)
    """Objects and kinds that were left out, with the reason."""

    def to_json(self, most_bytes: int = MAX_BYTES) -> bytes:
        """One List with an object on each line: readable for `kubectl`, every command of Shoal, `diff` and `grep`."""
        size = sum(len(entry.line) + len(_BETWEEN) for entry in self.entries)
        if size > most_bytes:
            what = f"the picture of the cluster is {size / 2**20:,.0f} MiB large"
            raise UserError(what, fix=f"nothing larger than {most_bytes / 2**20:,.0f} MiB is read back")
        return b"".join((_AHEAD, _BETWEEN.join(entry.line for entry in self.entries), _BEHIND))

    def to_yaml(self) -> bytes:
        """A document for each object, for human readers; JSON is read back much faster for large clusters."""
        return "---\n".join(to_yaml(msgspec.json.decode(entry.line)) for entry in self.entries).encode()

    def without(self, obj: str) -> Snapshot:
        """The snapshot without the object of that location: `Pod default/x`."""
        return Snapshot([entry for entry in self.entries if entry.document.where.obj != obj], self.notes)

    def take(self, name: str, obj: Obj) -> None:
        """Add one redacted object, or a note why no command could read it."""
        line = msgspec.json.encode(obj)
        try:
            found = read(line)
        except UserError as error:
            path = f"{error.where.path}: " if error.where.path else ""
            self.notes.append(one_line(f"{name} is left out: {path}{error.what}"))
            return
        # Errors name the object, because there is no file.
        self.entries.extend(SnapshotEntry(line, Document(one.value, Where(obj=one.where.obj))) for one in found)


async def read_snapshot(api: Api, ruling: QueueRuling = _USUAL, now: datetime | None = None) -> Snapshot:
    """All objects that decisions depend on. Errors for nodes or pods, or of the whole server, are raised. `now`: the
    time by which the Lease of Kueue's leader is judged; without it no Lease is read.
    """
    snapshot = Snapshot()
    kinds = list(present(await answering(api)))
    ahead = [kind for kind in kinds if kind != PODS]
    for kind, found in zip(ahead, await asyncio.gather(*(_listed(api, kind) for kind in ahead)), strict=True):
        _take(snapshot, kind, found)
    for kind in kinds[len(ahead) :]:
        _take(snapshot, kind, await _listed(api, kind))
    if (report := await _budget_report(api, snapshot.notes)) is not None:
        snapshot.take(REPORT_KIND, report)
    own, queues = await _in_use(api, ruling)
    for obj in await _configuration(api, replace(ruling, given=ruling.given or queues), snapshot.notes):
        snapshot.take("Configuration", obj)
    if own is not None:
        snapshot.take(RUN_KIND, _own_document(own))
    for obj in await _leases(api, ruling.namespace, now) if now is not None else ():
        snapshot.take("Lease", obj)
    return snapshot


def _take(snapshot: Snapshot, kind: Kind, found: list[Item] | ForbiddenError) -> None:
    if isinstance(found, ForbiddenError):
        if kind in NEEDED:
            raise found
        snapshot.notes.append(f"{kind.plural} are left out: {found}")
        return
    for item in sorted(found, key=lambda each: each.key):
        snapshot.take(f"{kind.name} {'/'.join(part for part in item.key if part)}", redacted(item.obj()))


async def _listed(api: Api, kind: Kind) -> list[Item] | ForbiddenError:
    try:
        return [relabelled(kind, item) for item in (await api.list(kind)).items]
    except NotFoundError:
        # The kind was removed after discovery, or is not served in the supported version.
        return []
    except ForbiddenError as error:
        return error


async def _budget_report(api: Api, notes: list[str]) -> Obj | None:
    """What enforced budgets have spent."""
    where = Where(obj=f"ConfigMap {LeaderElectionRules().resource_namespace}/{CONFIG_MAP}")
    try:
        item = await api.get(CONFIG_MAPS, LeaderElectionRules().resource_namespace, CONFIG_MAP)
        report = report_in(item.read(ReportMap), where)
    except RefusedError:
        return None
    except (UserError, msgspec.DecodeError) as error:
        notes.append(f"{where.obj} is left out: {error}")
        return None
    if report is None:
        return None
    fields: Obj = msgspec.json.decode(to_json(report))
    return {**fields, "apiVersion": REPORT_VERSION, "kind": REPORT_KIND, "metadata": {"name": CONFIG_MAP}}


async def _configuration(api: Api, ruling: QueueRuling, notes: list[str]) -> list[Obj]:
    if ruling.given is not None:
        return [_document(ruling.given, ruling.namespace)]
    try:
        item = await api.get(CONFIG_MAPS, ruling.namespace, KUEUE_CONFIG)
        return list(_inside(item, ruling.namespace))
    except RefusedError:
        return []
    except UserError as error:
        notes.append(f"ConfigMap {ruling.namespace}/{KUEUE_CONFIG} is left out: {error}")
        return []


async def _in_use(api: Api, ruling: QueueRuling) -> tuple[RunConfiguration | None, Configuration | None]:
    """The configuration with which `shoal run` decides, and that of its queues where no ConfigMap has it."""
    if ruling.own is not None:
        return ruling.own, None
    rules = LeaderElectionRules()
    try:
        lease = (await api.get(LEASES, rules.resource_namespace, rules.resource_name)).obj()
    except RefusedError:
        return None, None
    annotations = lease["metadata"].get("annotations") or {}
    if not (lease.get("spec") or {}).get("holderIdentity"):
        return None, None
    return _read(annotations.get(IN_USE), RunConfiguration), _read(annotations.get(QUEUES_IN_USE), Configuration)


def _read(text: str | None, kind: type[T]) -> T | None:
    """None for what another version has written otherwise."""
    try:
        return None if not text else msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        return None


def _own_document(own: RunConfiguration) -> Obj:
    fields: Obj = msgspec.json.decode(to_json(own.deciding()))
    return {**fields, "apiVersion": RUN_VERSION, "kind": RUN_KIND, "metadata": {"name": "configuration"}}


async def _leases(api: Api, namespace: str, now: datetime) -> list[Obj]:
    """The Lease of Kueue's leader, if it is held now: a snapshot has no time by which its reader could judge that."""
    found: list[Obj] = []
    for name in KUEUE.leases:
        try:
            item = await api.get(LEASES, namespace, name)
            is_at_work = is_renewed(item, now)
        except (RefusedError, msgspec.DecodeError):
            continue
        if is_at_work:
            meta = {"name": name, "namespace": namespace}
            head = {"apiVersion": LEASES.api_version, "kind": LEASES.name, "metadata": meta}
            found.append({**head, "spec": {"holderIdentity": item.obj()["spec"]["holderIdentity"]}})
    return found


def _inside(item: Item, namespace: str) -> Iterator[Obj]:
    documents: Iterable[Document] = read(msgspec.json.encode(item.obj()))
    for document in unwrapped(documents):
        if isinstance(document.value, Configuration):
            yield _document(document.value, namespace)


def _document(configuration: Configuration, namespace: str) -> Obj:
    """Only the modelled fields, so that no other content of the ConfigMap is included; and the namespace of Kueue."""
    fields: Obj = msgspec.json.decode(to_json(configuration)) | {"namespace": namespace}
    head = {"apiVersion": f"config.{V1BETA2}", "kind": "Configuration", "metadata": {"name": "configuration"}}
    return {**fields, **head}

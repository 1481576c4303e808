"""Reads what `kubectl get pods,nodes,events,namespaces -A -o json` wrote, for filling a history.

A file is of the moment that its name has, as in `snapshot-2026-10-29T10:00:00Z.json`. Without one it is of the latest
moment that its objects name: they were so then, and nothing is claimed about later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from shoal.api.files import read_whole
from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct, Timestamp, dec_hook
from shoal.client.item import Item
from shoal.store.history.pod_rows import RecordedPod, read_pod
from shoal.units.calendar_windows import rfc3339
from shoal.units.errors import UserError, Where, one_line

_T = TypeVar("_T")
_SYSTEM = "kube-system"
_MOST_BYTES = 1 << 30
_CLOCK_SKEW_MS = 60_000
"""The clock of the API server may be ahead of this machine's."""
_NAMED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}[:-]?[0-9]{2}[:-]?[0-9]{2}Z")
_FIX = "write it with kubectl get pods,nodes,events,namespaces -A -o json"


class PodEvent(msgspec.Struct, frozen=True):
    uid: str
    reason: str
    at_ms: int
    """When it was seen last."""


class ClusterSnapshot(msgspec.Struct, frozen=True):
    """What one file has; None for a kind of which it has no object."""

    name: str
    at_ms: int
    pods: Mapping[str, RecordedPod] | None = None
    """By uid."""
    nodes: Sequence[Item] | None = None
    events: Sequence[PodEvent] | None = None
    """About pods."""
    events_since_ms: int = 0
    """Since when all events are there: older ones are removed by the time of their last change."""
    namespaces: Mapping[str, Mapping[str, str]] = {}
    """Their labels."""
    is_complete: bool = False
    """The user says that the pods are those of all namespaces."""

    @property
    def is_of_all_namespaces(self) -> bool:
        """Those of one namespace say nothing of what others held. Every cluster has pods in kube-system."""
        found = {pod.metadata.namespace for pod in (self.pods or {}).values()}
        return bool(found) and (self.is_complete or len(found) > 1 or _SYSTEM in found)


class _About(ApiStruct, frozen=True):
    kind: str = ""
    uid: str = ""


class _EventRepeats(ApiStruct, frozen=True):
    last_observed_time: Timestamp | None = None


class _FoundEvent(ApiStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    involved_object: _About = _About()
    reason: str = ""
    message: str = ""
    last_timestamp: Timestamp | None = None
    event_time: Timestamp | None = None
    series: _EventRepeats | None = None

    def what(self) -> str:
        """The reason; of a container that is started again another one than of a pod that ends."""
        return "Restarting" if self.reason == "Killing" and "will be restarted" in self.message else self.reason

    def last_ms(self) -> int | None:
        repeated = self.series.last_observed_time if self.series is not None else None
        return _latest((repeated, self.last_timestamp, self.event_time, self.metadata.creation_timestamp))


class _Beat(ApiStruct, frozen=True):
    last_heartbeat_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None


class _BeatingStatus(ApiStruct, frozen=True):
    conditions: tuple[_Beat, ...] = ()


class _BeatingNode(ApiStruct, frozen=True):
    metadata: ObjectMeta
    status: _BeatingStatus = _BeatingStatus()


class _Kind(msgspec.Struct):
    kind: str = ""


class _ListedMeta(ApiStruct, frozen=True):
    metadata: ObjectMeta


class _KubectlList(msgspec.Struct):
    kind: str = ""
    items: list[msgspec.Raw] | None = None


def read_snapshot(path: Path, now_ms: int, *, is_complete: bool = False) -> ClusterSnapshot:
    """`now_ms`: no file is of a later moment. `is_complete`: its pods are those of all namespaces, also where they are
    of one.

    Raises UserError with the file and what is wrong with it.
    """
    where = Where(file=str(path))
    try:
        document = msgspec.json.decode(read_whole(path, _MOST_BYTES), type=_KubectlList)
    except msgspec.DecodeError as error:
        raise UserError(f"is no list of objects as JSON: {one_line(str(error))}", where=where, fix=_FIX) from None
    if document.items is None:
        raise UserError("has no items", where=where, fix=_FIX)
    by_kind: dict[str, list[msgspec.Raw]] = {}
    for at, raw in enumerate(document.items):
        try:
            kind = msgspec.json.decode(raw, type=_Kind).kind or document.kind.removesuffix("List")
        except msgspec.DecodeError:
            raise UserError("is no object", where=where.with_path(f"items[{at}]"), fix=_FIX) from None
        by_kind.setdefault(kind, []).append(raw)
    try:
        found = _snapshot(path, by_kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise UserError(f"has an object that cannot be read: {one_line(str(error))}", where=where) from None
    if found.at_ms > now_ms + _CLOCK_SKEW_MS:
        what = f"is of a moment that has not come yet, {rfc3339(found.at_ms)}"
        raise UserError(what, where=where, fix="correct the moment in its name, in its objects, or the clock")
    return msgspec.structs.replace(found, is_complete=is_complete)


def _snapshot(path: Path, by_kind: Mapping[str, list[msgspec.Raw]]) -> ClusterSnapshot:
    where = Where(file=str(path))
    pods = [read_pod(_item(raw)) for raw in by_kind.get("Pod", ())]
    nodes = [_item(raw) for raw in by_kind.get("Node", ())]
    events = [_decoded(raw, _FoundEvent) for raw in by_kind.get("Event", ())]
    if not pods and not nodes and not events:
        raise UserError("has no pods, nodes or events", where=where, fix=_FIX)
    seen = [at for one in events if (at := one.last_ms()) is not None]
    latest = max([*seen, *map(_latest_of_pod, pods), *(_latest_of_node(item) for item in nodes)], default=0)
    named = _NAMED.search(path.name)
    at_ms = latest if named is None else _named_ms(named[0], where)
    if latest > at_ms:
        what = f"has objects that changed later than the moment in its name, {(latest - at_ms) / 1000:,.0f} s"
        raise UserError(what, where=where, fix="name the moment at which kubectl had written the file, in UTC")
    of_pods = [
        PodEvent(one.involved_object.uid, one.what(), at)
        for one in events
        if one.involved_object.kind == "Pod" and one.involved_object.uid and (at := one.last_ms()) is not None
    ]
    spaces = [_decoded(raw, _ListedMeta).metadata for raw in by_kind.get("Namespace", ())]
    return ClusterSnapshot(
        name=str(path),
        at_ms=at_ms,
        pods={pod.metadata.uid: pod for pod in pods if pod.metadata.uid} if pods else None,
        nodes=nodes or None,
        events=of_pods if events else None,
        events_since_ms=min(seen, default=at_ms),
        namespaces={meta.name: meta.labels for meta in spaces},
    )


def _decoded(raw: msgspec.Raw, kind: type[_T]) -> _T:
    return _item(raw).read(kind)


def _item(raw: msgspec.Raw) -> Item:
    data = bytes(raw)
    meta = msgspec.json.decode(data, type=_ListedMeta, dec_hook=dec_hook).metadata
    return Item(meta.namespace, meta.name, meta.uid, 0, data)


def _latest_of_pod(pod: RecordedPod) -> int:
    states = [one.state for one in (*pod.status.container_statuses, *pod.status.init_container_statuses)]
    runs = [one for state in states for one in (state.running, state.terminated) if one is not None]
    moments = [moment for one in runs for moment in (one.started_at, one.finished_at)]
    changed = [one.last_transition_time for one in pod.status.conditions]
    return _latest((pod.metadata.creation_timestamp, pod.status.start_time, *changed, *moments)) or 0


def _latest_of_node(item: Item) -> int:
    node = item.read(_BeatingNode)
    beats = [at for one in node.status.conditions for at in (one.last_heartbeat_time, one.last_transition_time)]
    return _latest((node.metadata.creation_timestamp, *beats)) or 0


def _latest(moments: Iterable[datetime | None]) -> int | None:
    return max((round(one.timestamp() * 1000) for one in moments if one is not None), default=None)


def _named_ms(text: str, where: Where) -> int:
    digits = "".join(one for one in text if one.isdecimal())
    try:
        return round(datetime.strptime(f"{digits}+0000", "%Y%m%d%H%M%S%z").timestamp() * 1000)
    except ValueError:
        raise UserError("has no moment in its name", where=where, fix="write it as 2026-10-29T10:00:00Z") from None

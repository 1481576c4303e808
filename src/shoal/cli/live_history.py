"""Reads from a live cluster what a snapshot does not contain, for `shoal why`: how containers ended, the Events of an
object and its pods, and the quotas that refuse its pods.

Only a few objects are read, by name. What may not be read is left out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from shoal.api.decode import Document, meta_of, name_of_kind
from shoal.api.runtime_classes import RuntimeClass
from shoal.cli.advice_events import is_advice
from shoal.cli.cluster_access import speak
from shoal.cli.explanation_text import insert
from shoal.cli.object_names import GANG, POD
from shoal.cli.quota_raises import also_exceeded
from shoal.units.near_texts import nearest_name
from shoal.views.explanation import REFUSED
from shoal.views.history import DELETED, FAILED, Happening, history_lines
from shoal.views.pod_failures import failed_ends, failure_lines, job_lines
from shoal.views.refused_pods import (
    EXCEEDED,
    FAILED_CREATE,
    exceeded,
    missing_account,
    missing_account_words,
    tell_last_refusal,
    tell_refusal,
)

if TYPE_CHECKING:
    from shoal.api.pod import Pod
    from shoal.client.http.access import Access
    from shoal.client.kind import Kind
    from shoal.client.port import Api
    from shoal.views.explanation import Explanation

HISTORY = "history"
_MOST_PODS = 6
_MOST_NAMES = 12
"""Pods whose Events are read one by one; the Events of more are read together."""
_MOST_NODES = 8
_CREATED, _DELETED = re.compile(r"Created pod: (\S+)"), re.compile(r"Deleted pod: (\S+)")
_ASSIGNED = re.compile(r"Successfully assigned (?P<pod>\S+) to (?P<node>\S+)")
_NODES_EVENTS = "default"
"""The namespace of the Events of nodes."""
_CHANGES = frozenset({"Evicted", "Admitted", "Finished", "Failed", "DisruptionTarget"})
"""Conditions whose change belongs to the history, where no Event says it."""


class Family(NamedTuple):
    """An object and those that belong to it."""

    kind: str
    """In small letters."""
    key: str
    pods: Sequence[str] = ()
    """Those that tell most come first: failed and waiting ones."""
    workload: str = ""
    owners: Sequence[str] = ()
    """Its controllers, if others than itself create its pods."""
    missing: int = 0
    """Pods that its controller has yet to create."""
    would_run: bool = False
    """Whether the nodes have places for all of these."""
    missing_pod: Pod | None = None
    """One of these as the controller would create it."""


class Read(NamedTuple):
    """Objects and Events as the API server has them."""

    pods: list[dict[str, Any]]
    jobs: list[dict[str, Any]]
    quotas: list[dict[str, Any]]
    events: list[dict[str, Any]]
    """Of the object, its controllers and its pods."""
    node_events: list[dict[str, Any]]


def show_history(explanation: Explanation, family: Family, documents: Sequence[Document], access: Access) -> None:
    """Adds chapters about failures, refusals and history."""
    namespace = family.key.partition("/")[0]
    read = speak(access, lambda api: read_family(api, family, namespace))
    insert(explanation, "failed", *(line for job in read.jobs for line in job_lines(job)), *failure_lines(read.pods))
    refused = [
        str(event.get("message", ""))
        for event in read.events
        if event.get("reason") == FAILED_CREATE and family.missing
    ]
    short = exceeded(refused, read.quotas, family.missing)
    if short and family.missing_pod is not None:
        short = also_exceeded(short, read.quotas, family.missing_pod, family.missing)
    # Where the quotas were read with the other objects, they have said the same.
    is_told = explanation.code == EXCEEDED
    if short and not is_told:
        tell_refusal(explanation, short, namespace, would_run=family.would_run)
    elif refused and not is_told and all(heading != REFUSED for heading, _ in explanation.chapters):
        lines = tell_last_refusal(explanation, refused[-1])
        account = missing_account(refused[-1])
        exists = bool(account) and speak(access, lambda api: has_account(api, namespace, account))
        fixes = missing_account_words(refused[-1], namespace, exists=exists)
        insert(explanation, REFUSED, *lines, meant_runtime(family.missing_pod, documents), *fixes)
    names = {meta.uid: meta.key for document in documents if (meta := meta_of(document.value)).uid}
    explanation.add(HISTORY, *history_lines(happenings_of(read, documents), names, family.kind))


def happenings_of(read: Read, documents: Sequence[Document]) -> list[Happening]:
    """What happened to the objects of a family, and to the nodes of its pods since these were there. Warnings of the
    advisor have a chapter of their own."""
    events = [event for event in read.events if not is_advice(event)]
    return [
        *_of_events(of_present_objects(events, documents)),
        *_of_events(_since_assigned(read.node_events, read.events)),
        *_of_deletions(read.events),
        *_of_conditions([*read.pods, *read.jobs]),
        *_of_failures(read.pods),
    ]


def meant_runtime(pod: Pod | None, documents: Sequence[Document]) -> str:
    """The RuntimeClass with the most similar name, if the pod names one that does not exist; else empty."""
    name = "" if pod is None else pod.spec.runtime_class_name
    known = [meta_of(each.value).name for each in documents if isinstance(each.value, RuntimeClass)]
    near = nearest_name(name, known) if name and name not in known else ""
    return f'RuntimeClass "{near}" exists; did you mean that in spec.runtimeClassName?' if near else ""


async def has_account(api: Api, namespace: str, name: str) -> bool:
    """False also where it may not be read."""
    from shoal.client.kind import SERVICE_ACCOUNTS
    from shoal.client.refusals import RefusedError

    try:
        await api.get(SERVICE_ACCOUNTS, namespace, name)
    except RefusedError:
        return False
    return True


async def read_family(api: Api, family: Family, namespace: str) -> Read:
    """Pods that are gone belong to it as well: the Events of their controllers name them."""
    from shoal.client.kind import EVENTS, JOBS, PODS, RESOURCE_QUOTAS
    from shoal.client.port import Select

    async def get(kind: Kind, name: str) -> list[dict[str, Any]]:
        from shoal.client.refusals import RefusedError

        try:
            return [(await api.get(kind, namespace, name)).obj()]
        except RefusedError:
            return []

    async def listed(kind: Kind, fields: str, where: str = namespace) -> list[dict[str, Any]]:
        from shoal.client.refusals import RefusedError

        try:
            return [item.obj() for item in (await api.list(kind, where, Select(fields=fields))).items]
        except RefusedError:
            return []

    async def events_of(names: Iterable[str], where: str = namespace) -> list[dict[str, Any]]:
        found = await asyncio.gather(*(listed(EVENTS, f"involvedObject.name={each}", where) for each in names))
        return [event for events in found for event in events]

    async def events_of_pods(names: Collection[str]) -> list[dict[str, Any]]:
        if len(names) <= _MOST_NAMES:
            return await events_of(names)
        found = await listed(EVENTS, "involvedObject.kind=Pod")
        return [event for event in found if (event.get("involvedObject") or {}).get("name") in names]

    _, _, name = family.key.partition("/")
    pods = [_name(pod) for pod in family.pods]
    owners = dict.fromkeys([name, *map(_name, family.owners), *([_name(family.workload)] if family.workload else [])])
    found, jobs, quotas, owned, own = await asyncio.gather(
        asyncio.gather(*(get(PODS, pod) for pod in pods[:_MOST_PODS])),
        get(JOBS, name) if family.kind in ("job", GANG) else _nothing(),
        listed(RESOURCE_QUOTAS, "") if family.missing else _nothing(),
        events_of(each for each in owners if each not in pods),
        events_of_pods(dict.fromkeys(pods)),
    )
    former = dict.fromkeys(name for name in _named(_CREATED, owned) if name not in pods)
    events = [*owned, *own, *(await events_of_pods(former))]
    nodes = dict.fromkeys(node for _, node, _ in _assigned(events))
    return Read(
        [pod for each in found for pod in each],
        jobs,
        quotas,
        events,
        await events_of(list(nodes)[-_MOST_NODES:], _NODES_EVENTS),
    )


def _name(key: str) -> str:
    return key.partition("/")[2]


async def _nothing() -> list[dict[str, Any]]:
    return []


def of_present_objects(
    events: Sequence[Mapping[str, Any]], documents: Sequence[Document]
) -> Iterator[Mapping[str, Any]]:
    """Without the Events of an earlier object that had the kind and the name of a present one."""
    present = {(name_of_kind(each), meta.key): meta.uid for each in documents if (meta := meta_of(each.value)).uid}
    for event in events:
        about = event.get("involvedObject") or {}
        key = f"{about.get('namespace', '')}/{about.get('name', '')}"
        uid = present.get((str(about.get("kind", "")), key))
        if uid is None or about.get("uid") in (None, "", uid):
            yield event


def _of_events(events: Iterable[Mapping[str, Any]]) -> Iterator[Happening]:
    for event in events:
        about = event.get("involvedObject") or {}
        series = event.get("series") or {}
        moment = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
        at = _moment(moment or (event.get("metadata") or {}).get("creationTimestamp"))
        version = str((event.get("metadata") or {}).get("resourceVersion", ""))
        if at is not None:
            yield Happening(
                at,
                str(about.get("kind", "")).lower(),
                str(about.get("name", "")),
                str(event.get("reason", "")),
                str(event.get("message", "")),
                event.get("type") == "Warning",
                int(version) if version.isdecimal() else 0,
            )


def _of_conditions(objects: Sequence[Mapping[str, Any]]) -> Iterator[Happening]:
    for obj in objects:
        for condition in (obj.get("status") or {}).get("conditions") or ():
            at = _moment(condition.get("lastTransitionTime"))
            if at is not None and condition.get("type") in _CHANGES and condition.get("status") == "True":
                kind = POD if "containers" in (obj.get("spec") or {}) else "job"
                name = str(obj["metadata"].get("name", ""))
                reason = str(condition.get("reason") or condition["type"])
                yield Happening(at, kind, name, reason, str(condition.get("message", "")), is_warning=True)


def _of_failures(pods: Sequence[Mapping[str, Any]]) -> Iterator[Happening]:
    for pod in pods:
        for moment, words in failed_ends(pod):
            at = _moment(moment)
            if at is not None:
                yield Happening(at, POD, str(pod["metadata"].get("name", "")), FAILED, words)


def _of_deletions(events: Iterable[Mapping[str, Any]]) -> Iterator[Happening]:
    """Pods that their controller has deleted."""
    for event in events:
        for name in _named(_DELETED, [event]):
            yield from (structs.replace(each, kind=POD, name=name, reason=DELETED) for each in _of_events([event]))


def _since_assigned(
    events: Iterable[Mapping[str, Any]], family: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Events of nodes from the moment at which the first pod was assigned to the node."""
    first: dict[str, datetime] = {}
    for _, node, at in _assigned(family):
        first[node] = min(first.get(node, at), at)
    for event in events:
        happenings = list(_of_events([event]))
        if any(each.name in first and each.at >= first[each.name] for each in happenings):
            yield event


def _assigned(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, datetime]]:
    """Pod, node, and when it was assigned."""
    for event in events:
        found = _ASSIGNED.match(str(event.get("message", ""))) if event.get("reason") == "Scheduled" else None
        at = next((each.at for each in _of_events([event])), None)
        if found is not None and at is not None:
            yield found["pod"], found["node"], at


def _named(pattern: re.Pattern[str], events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for event in events:
        found = pattern.match(str(event.get("message", "")))
        if found is not None:
            yield found[1]


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None

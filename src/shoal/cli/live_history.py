"""Reads from a live cluster what a snapshot does not contain, for `shoal why`: how containers ended, the Events of an
object and its pods, and the quotas that refuse its pods.

Only a few objects are read, by name. What may not be read is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.api.decode import Document, meta_of, name_of_kind
from shoal.api.runtime_classes import RuntimeClass
from shoal.cli.cluster_access import speak
from shoal.cli.explanation_text import insert
from shoal.cli.object_names import GANG, POD
from shoal.cli.quota_raises import also_exceeded
from shoal.units.near_texts import nearest_name
from shoal.views.explanation import REFUSED
from shoal.views.history import Happening, history_lines
from shoal.views.pod_failures import failure_lines, job_lines
from shoal.views.refused_pods import EXCEEDED, FAILED_CREATE, exceeded, tell_last_refusal, tell_refusal

if TYPE_CHECKING:
    from shoal.api.pod import Pod
    from shoal.client.http.access import Access
    from shoal.client.kind import Kind
    from shoal.client.port import Api
    from shoal.views.explanation import Explanation

HISTORY = "history"
_MOST_PODS = 6
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
    missing: int = 0
    """Pods that its controller has yet to create."""
    would_run: bool = False
    """Whether the nodes have places for all of these."""
    missing_pod: Pod | None = None
    """One of these as the controller would create it."""


class _Read(NamedTuple):
    pods: list[dict[str, Any]]
    jobs: list[dict[str, Any]]
    quotas: list[dict[str, Any]]
    events: list[dict[str, Any]]


def show_history(explanation: Explanation, family: Family, documents: Sequence[Document], access: Access) -> None:
    """Adds chapters about failures, refusals and history."""
    namespace = family.key.partition("/")[0]
    read = speak(access, lambda api: _read(api, family, namespace))
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
        insert(explanation, REFUSED, *lines, meant_runtime(family.missing_pod, documents))
    names = {meta.uid: meta.key for document in documents if (meta := meta_of(document.value)).uid}
    happenings = [*_of_events(of_present_objects(read.events, documents)), *_of_conditions([*read.pods, *read.jobs])]
    explanation.add(HISTORY, *history_lines(happenings, names, family.kind))


def meant_runtime(pod: Pod | None, documents: Sequence[Document]) -> str:
    """The RuntimeClass with the most similar name, if the pod names one that does not exist; else empty."""
    name = "" if pod is None else pod.spec.runtime_class_name
    known = [meta_of(each.value).name for each in documents if isinstance(each.value, RuntimeClass)]
    near = nearest_name(name, known) if name and name not in known else ""
    return f'RuntimeClass "{near}" exists; did you mean that in spec.runtimeClassName?' if near else ""


async def _read(api: Api, family: Family, namespace: str) -> _Read:
    from shoal.client.kind import EVENTS, JOBS, PODS
    from shoal.client.port import Select
    from shoal.store.snapshot.kinds import RESOURCE_QUOTAS

    async def get(kind: Kind, name: str) -> list[dict[str, Any]]:
        from shoal.client.refusals import RefusedError

        try:
            return [(await api.get(kind, namespace, name)).obj()]
        except RefusedError:
            return []

    async def listed(kind: Kind, fields: str) -> list[dict[str, Any]]:
        from shoal.client.refusals import RefusedError

        try:
            return [item.obj() for item in (await api.list(kind, namespace, Select(fields=fields))).items]
        except RefusedError:
            return []

    _, _, name = family.key.partition("/")
    pods = [pod.partition("/")[2] for pod in family.pods[:_MOST_PODS]]
    involved = dict.fromkeys([name, *pods, *([family.workload.partition("/")[2]] if family.workload else [])])
    results = await asyncio.gather(
        *(get(PODS, pod) for pod in pods),
        get(JOBS, name) if family.kind in ("job", GANG) else _nothing(),
        listed(RESOURCE_QUOTAS, "") if family.missing else _nothing(),
        *(listed(EVENTS, f"involvedObject.name={each}") for each in involved),
    )
    count = len(pods)
    events = [event for found in results[count + 2 :] for event in found]
    return _Read([pod for found in results[:count] for pod in found], results[count], results[count + 1], events)


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
        if at is not None:
            yield Happening(
                at,
                str(about.get("kind", "")).lower(),
                str(about.get("name", "")),
                str(event.get("reason", "")),
                str(event.get("message", "")),
                event.get("type") == "Warning",
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


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None

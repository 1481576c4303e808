"""Which pods KAI's queues keep back in a set of manifests: the queues' own tree decides, by quota alone.

Rejected: ending others for those whom a queue owes room. On a cluster that takes pods that end and others that come; of
a picture it is said that somebody has to give back, and nobody is placed on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.decode import Document, Unknown
from shoal.api.groups.kai import QUEUE_LABEL, KaiPodGroup
from shoal.controllers.kai.knowledge import Knowledge
from shoal.controllers.kai.quotas import SETTINGS
from shoal.controllers.kai.sights import Queue, minimum_of, parts_of
from shoal.controllers.kai.sums import sums_of
from shoal.controllers.kai.verdicts import NO_ROOM, verdict
from shoal.controllers.kai.work import Origin, Work
from shoal.controllers.kai.works import Works
from shoal.engine.events import Event, PodArrived, PodBound
from shoal.engine.queues.facts import Amounts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.state import Queues
from shoal.engine.who import Who
from shoal.store.kept import Kept

_GROUP = "scheduling.run.ai/"
_MOST_CYCLES = 10_000


def is_queue(document: Document) -> bool:
    value = document.value
    return isinstance(value, Unknown) and value.kind == "Queue" and value.api_version.startswith(_GROUP)


def kai_queues(documents: Iterable[Document]) -> dict[str, Queue]:
    found = (_queue(document) for document in documents if is_queue(document))
    return {queue.name: queue for queue in found if queue is not None}


def kai_works(documents: Sequence[Document], events: Iterable[Event], now_s: float) -> Works:
    """What is let in at once, from pods that wait and pods that run."""
    groups = {each.value.metadata.key: each.value for each in documents if isinstance(each.value, KaiPodGroup)}
    works = Works(lambda _: now_s)
    for event in events:
        if not isinstance(event, PodArrived | PodBound):
            continue
        origin = _origin(groups, event.key, event.who)
        if origin is None:
            continue
        if isinstance(event, PodBound):
            works.bound(event, origin)
        else:
            works.arrive(event, origin)
    return works


def kept_by_kai(documents: Sequence[Document], events: Sequence[Event], now_s: float) -> dict[str, Kept]:
    """By pod."""
    queues = kai_queues(documents)
    if not queues:
        return {}
    works = kai_works(documents, events, now_s)
    _let_in(works, _discipline(queues, events, works, now_s), now_s)
    sums = sums_of(queues, works.all.values())

    def held(queue: str, is_fixed: bool) -> Amounts:
        return sums.get((queue, "allocatedNonPreemptible" if is_fixed else "allocated"), {})

    found: dict[str, Kept] = {}
    for work in works.all.values():
        if not work.waiting or not work.origin.is_known or not work.is_whole:
            # A gang that is short of pods waits for them, and nobody's quota keeps it.
            continue
        asked = work.amounts(work.waiting.values())
        code, message = verdict(queues, work.origin.queue, asked, held, is_fixed=work.is_fixed)
        if code == NO_ROOM:
            message = "others would have to give back what they have beyond their quota; not decided on files"
        group = work.origin.name if work.origin.name not in work.waiting else ""
        kept = Kept(code, message, queue=f"KAI queue {work.origin.queue}", group=group)
        found |= dict.fromkeys(work.waiting, kept)
    return found


def _discipline(queues: Mapping[str, Queue], events: Iterable[Event], works: Works, now_s: float) -> Kueue:
    kueue = Kueue(Queues(SETTINGS))
    knowledge = Knowledge(kueue.queues)
    for event in events:
        knowledge.hear(event)
    knowledge.refresh(queues)
    for work in works.all.values():
        facts = work.facts()
        if facts is not None:
            kueue.put_workload(facts, now_s)
    return kueue


def _let_in(works: Works, kueue: Kueue, now_s: float) -> None:
    for _ in range(_MOST_CYCLES):
        if kueue.is_idle:
            return
        for admitted in kueue.cycle(now_s).admitted:
            work: Work = works.all[admitted.workload]
            works.let_in(work, now_s)


def _origin(groups: Mapping[str, KaiPodGroup], pod: str, who: Who) -> Origin | None:
    group = groups.get(who.group) if who.group else None
    if group is not None:
        spec = group.spec
        return Origin(who.group, spec.queue, minimum_of(spec), parts_of(spec), yields=spec.is_preemptible())
    queue = dict(who.traits.labels).get(QUEUE_LABEL, "")
    if queue and who.group:
        return Origin(who.group, queue, is_known=False)
    return Origin(pod, queue) if queue else None


def _queue(document: Document) -> Queue | None:
    raw: Any = document.value.raw if isinstance(document.value, Unknown) else {}
    try:
        return msgspec.convert(raw, Queue)
    except msgspec.ValidationError:
        return None

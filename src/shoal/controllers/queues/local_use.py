"""Admission fair sharing in the statuses of local queues: what each used lately, so that whoever comes after knows.

Written once a sampling interval, as Kueue does. Between two writes whoever comes after works it out from what was
written and from who has held quota since.

What stands in a status is believed of a queue that is seen for the first time; later it is our own word, and older than
what is known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import structs

from shoal.api.resources import CPU
from shoal.controllers.queues.spelling import amount_text
from shoal.engine.queues.facts import LocalQueueFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.state import Fact
from shoal.store.live.conditions import Moment, Status


def put_use(status: Status, kueue: Kueue, local: LocalQueueFacts, moment: Moment) -> None:
    queue = kueue.queues.cluster_queues.get(local.cluster_queue)
    if not kueue.usage.is_on or queue is None or not queue.facts.by_usage:
        return
    sharing = status.get("fairSharing") or {}
    before = sharing.get("admissionFairSharingStatus") or {}
    told_s = _seconds(before.get("lastUpdate"))
    if told_s is not None and moment.seconds < told_s + kueue.queues.settings.usage_sampling_s:
        return
    consumed = kueue.usage.consumed(local.key, moment.seconds)
    texts = {name: _text(name, amount) for name, amount in sorted(consumed.items())}
    status["fairSharing"] = {
        "weightedShare": 0,
        **sharing,
        "admissionFairSharingStatus": {"consumedResources": texts, "lastUpdate": moment.text},
    }


def as_known(facts: Iterable[Fact], known: Mapping[str, LocalQueueFacts]) -> Iterator[Fact]:
    """The news, without what is only read back."""
    for fact in facts:
        before = known.get(fact.key) if isinstance(fact, LocalQueueFacts) else None
        if isinstance(fact, LocalQueueFacts) and before is not None:
            yield structs.replace(fact, used=before.used, consumed=before.consumed, used_s=before.used_s)
        else:
            yield fact


def _text(resource: str, amount: float) -> str:
    return amount_text(resource, round(amount * 1000) if resource == CPU else round(amount))


def _seconds(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None

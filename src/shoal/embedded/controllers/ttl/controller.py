"""Deletes a job `ttlSecondsAfterFinished` after its end, with its pods.

The cache decides when to check; the server's copy decides whether to delete, because a user may just have extended the
time. The uid in the request protects a new Job of the same name.
"""

from __future__ import annotations

import msgspec

from shoal.api.partial import ConditionsStatus, DeletionMeta
from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key
from shoal.client.kind import JOBS
from shoal.client.loop import Loop
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError


class _TtlSpec(msgspec.Struct, frozen=True, rename="camel"):
    ttl_seconds_after_finished: int | None = None


class _Job(msgspec.Struct, frozen=True):
    metadata: DeletionMeta
    spec: _TtlSpec
    status: ConditionsStatus = ConditionsStatus()


def ttl_after_finished_controller(context: Context) -> Controller:
    jobs = context.informers.of(JOBS)

    async def reconcile(key: Key) -> float | None:
        item = jobs.get(*key)
        if item is None:
            return None
        left_s = _left_s(item, context.clock.seconds())
        if left_s is None or left_s > 0:
            return left_s
        try:
            fresh = await context.api.get(JOBS, *key)
            left_s = _left_s(fresh, context.clock.seconds())
            if left_s is None or left_s > 0:
                return left_s
            await context.api.delete(JOBS, *key, Deletion(policy="Foreground", uid=fresh.uid))
        except NotFoundError:
            # Another client deleted it first.
            return None
        return None

    loop = Loop(context, reconcile)
    loop.follow(JOBS)
    return loop


def _left_s(item: Item, now_s: float) -> float | None:
    """The time until the Job is deleted; None without a TTL."""
    job = item.read(_Job)
    ttl_s = job.spec.ttl_seconds_after_finished
    if ttl_s is None or job.metadata.deletion_timestamp is not None:
        return None
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            ended = condition.last_transition_time
            return ended.timestamp() + ttl_s - now_s if ended is not None else None
    return None

"""Reconciles CronJobs: records which Jobs have finished, deletes old ones, and creates due ones.

The status is written before the next decision, because the running Jobs are read from it.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key
from shoal.client.kind import CRON_JOBS, JOBS
from shoal.client.loop import Loop
from shoal.embedded.controllers.cron_jobs.cron_job import OwnedJob
from shoal.embedded.controllers.cron_jobs.cron_job_sync import CronJobSync


def cron_job_controller(context: Context) -> Controller:
    cron_jobs = context.informers.of(CRON_JOBS)
    owned = context.informers.of(JOBS).index("cron job", _owner_uid)

    async def reconcile(key: Key) -> float | None:
        item = cron_jobs.get(*key)
        if item is None:
            return None
        return await CronJobSync(context, item, owned[item.uid]).go()

    loop = Loop(context, reconcile)
    loop.follow(CRON_JOBS)
    loop.follow(JOBS, keys=_owner_key)
    return loop


def _owner_uid(item: Item) -> Iterable[str]:
    owner = item.read(OwnedJob).owner
    return (owner.uid,) if owner is not None else ()


def _owner_key(item: Item) -> Iterable[Key]:
    owner = item.read(OwnedJob).owner
    return ((item.namespace, owner.name),) if owner is not None else ()

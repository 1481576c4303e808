"""Queues the writers of a namespace for its quotas, and commits them together.

A quota allows one charge at a time, and a charge is only true when it is durable; one by one, a namespace with a quota
would do one write per disk latency. So all writes that arrived during the last commit are charged in turn, in memory,
and share the next commit and one write of each quota. It is kept whole or not at all: no charge ever depends on another
one that failed.

Rejected: charging on top of commits that are under way, without waiting for them. One that fails would take all behind
it along, through as many batches as there are, and refusals would have named amounts that were never used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from shoal.embedded.apiserver.admission.quota.usage_arithmetic import QUOTAS, QuotaCharge
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.pending_write import PendingWrite
from shoal.embedded.apiserver.state.locks import Hold
from shoal.embedded.apiserver.state.record import Record, Write
from shoal.embedded.apiserver.status import unavailable


class QuotaCommitQueue:
    """One queue per namespace, which exists while it has entries."""

    def __init__(self) -> None:
        self._pending: dict[str, list[PendingWrite]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def committed(self, context: ServerContext, pending: PendingWrite) -> list[Record]:
        namespace = pending.admission.namespace
        if namespace not in self._pending:
            self._pending[namespace] = []
            task = asyncio.get_running_loop().create_task(self._serve(context, namespace))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._pending[namespace].append(pending)
        return await result(pending)

    async def _serve(self, context: ServerContext, namespace: str) -> None:
        batch: list[PendingWrite] = []
        try:
            while self._pending[namespace]:
                async with quotas_lock(context, namespace):
                    batch, self._pending[namespace] = self._pending[namespace], []
                    await commit_together(context, namespace, batch)
        finally:
            # Only when this task was cancelled: pending writes must not wait forever.
            for pending in (*batch, *self._pending.pop(namespace)):
                if not pending.outcome.is_settled:
                    pending.outcome.settle(unavailable("the server is shutting down"))


def quotas_lock(context: ServerContext, namespace: str) -> Hold:
    """All quotas of a namespace, those too that are just being made."""
    return context.state.lock(all_quotas(namespace))


def all_quotas(namespace: str) -> Ref:
    """What represents them: no object has this name."""
    return Ref(QUOTAS, namespace, "")


async def result(pending: PendingWrite) -> list[Record]:
    await pending.outcome.known()
    if pending.outcome.fault is not None:
        raise pending.outcome.fault
    return pending.records


async def commit_together(context: ServerContext, namespace: str, batch: Sequence[PendingWrite]) -> None:
    """Charge and commit what the quotas allow, and settle all; the caller holds the quotas.

    The refused hear of it after the commit: by then, what they were refused for can be read.
    """
    try:
        refused = await _committed(context, namespace, batch)
    except Exception as fault:  # noqa: BLE001 - each writer raises it where it can be answered
        for pending in batch:
            pending.outcome.settle(fault)
        return
    for pending in batch:
        pending.outcome.settle(refused.get(pending))


async def _committed(
    context: ServerContext, namespace: str, batch: Sequence[PendingWrite]
) -> dict[PendingWrite, Exception]:
    quotas, state = context.quotas, context.state
    accounts = quotas.accounts(namespace)
    if not accounts.are_counted:
        # Writes that began before the quota was visible were not charged: they have to be visible to be counted.
        await state.settled()
        accounts = quotas.accounts(namespace)
    refused: dict[PendingWrite, Exception] = {}
    for pending in batch:
        try:
            if pending.check is not None:
                pending.check()
            state.check(pending.writes)
            quotas.charge(accounts, pending.admission, gone=pending.gone)
        except Exception as fault:  # noqa: BLE001 - one writer's fault is not the others'
            refused[pending] = fault
    accepted = [pending for pending in batch if pending not in refused]
    writes = [write for pending in accepted for write in pending.writes]
    if writes:
        written = {write.ref for write in writes}
        charges = [charge for charge in accounts.charges() if charge.ref not in written]
        records = iter(await state.commit([*writes, *quota_writes(context, charges)]))
        for pending in accepted:
            pending.records = [next(records) for _ in pending.writes]
    return refused


def quota_writes(context: ServerContext, charges: Sequence[QuotaCharge]) -> list[Write]:
    """The statuses of quotas that change; the caller holds them."""
    return [write for charge in charges if (write := _write(context, charge)) is not None]


def _write(context: ServerContext, charge: QuotaCharge) -> Write | None:
    record = context.state.get(charge.ref)
    if record is None:
        return None
    quota = msgspec.json.decode(record.data)
    status = quota.setdefault("status", {})
    hard = (quota.get("spec") or {}).get("hard", {})
    if status.get("used") == charge.used and status.get("hard") == hard:
        return None
    status["hard"] = hard
    status["used"] = charge.used
    return Write(charge.ref, quota, record, record.uid, record.labels, record.fields)

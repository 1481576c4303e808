"""Where the writers of a namespace line up for its quotas, and are served together.

A quota allows one charge at a time, and a charge is only true when it is durable; one by one, a namespace with a quota
would do one write per disk latency. So all writes that arrived during the last commit are charged in turn,
in memory, and share the next commit and one write of each quota. It is kept whole or not at all: no charge
ever stands on another one that failed.

Rejected: charging on top of commits that are under way, without waiting for them. One that fails would take all behind
it along, through as many batches as there are, and refusals would have named amounts that were never used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from shoal.embedded.apiserver.admission.quota.book import QUOTAS, QuotaCharge
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.state.outcome import Outcome
from shoal.embedded.apiserver.state.record import Record, Write
from shoal.embedded.apiserver.status import unavailable

if TYPE_CHECKING:
    from shoal.embedded.apiserver.rest.context import ServerContext
    from shoal.embedded.apiserver.state.locks import Hold


class PendingWrite:
    """What one writer, who holds the object, wants committed and charged, and what became of it."""

    __slots__ = ("admission", "check", "gone", "outcome", "records", "writes")

    def __init__(
        self, admission: AdmissionAttributes, writes: Sequence[Write], check: Callable[[], None] | None, *, gone: bool
    ) -> None:
        self.admission = admission
        self.writes = writes
        self.check = check
        self.gone = gone
        self.records: list[Record] = []
        self.outcome = Outcome()


class QuotaCommitQueue:
    """One queue per namespace, which exists while it has entries."""

    def __init__(self) -> None:
        self._lines: dict[str, list[PendingWrite]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def served(self, stage: ServerContext, errand: PendingWrite) -> list[Record]:
        namespace = errand.admission.namespace
        if namespace not in self._lines:
            self._lines[namespace] = []
            task = asyncio.get_running_loop().create_task(self._serve(stage, namespace))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._lines[namespace].append(errand)
        return await result(errand)

    async def _serve(self, stage: ServerContext, namespace: str) -> None:
        errands: list[PendingWrite] = []
        try:
            while self._lines[namespace]:
                async with quotas_lock(stage, namespace):
                    errands, self._lines[namespace] = self._lines[namespace], []
                    await commit_together(stage, namespace, errands)
        finally:
            # Only when this task was cancelled: pending writes must not wait forever.
            for errand in (*errands, *self._lines.pop(namespace)):
                if not errand.outcome.is_settled:
                    errand.outcome.settle(unavailable("the server is shutting down"))


def quotas_lock(stage: ServerContext, namespace: str) -> Hold:
    """All quotas of a namespace, those too that are just being made."""
    return stage.state.lock(all_quotas(namespace))


def all_quotas(namespace: str) -> Ref:
    """What stands for them: no object has this name."""
    return Ref(QUOTAS, namespace, "")


async def result(errand: PendingWrite) -> list[Record]:
    await errand.outcome.known()
    if errand.outcome.fault is not None:
        raise errand.outcome.fault
    return errand.records


async def commit_together(stage: ServerContext, namespace: str, errands: Sequence[PendingWrite]) -> None:
    """Charge and commit what the quotas allow, and settle all; the caller holds the quotas.

    The refused hear of it after the commit: by then, what they were refused for can be read.
    """
    try:
        refused = await _committed(stage, namespace, errands)
    except Exception as fault:  # noqa: BLE001 - each writer raises it where it can be answered
        for errand in errands:
            errand.outcome.settle(fault)
        return
    for errand in errands:
        errand.outcome.settle(refused.get(errand))


async def _committed(
    stage: ServerContext, namespace: str, errands: Sequence[PendingWrite]
) -> dict[PendingWrite, Exception]:
    quotas, state = stage.quotas, stage.state
    accounts = quotas.accounts(namespace)
    if not accounts.are_counted:
        # Writes that began before the quota was visible were not charged: they have to be visible to be counted.
        await state.settled()
        accounts = quotas.accounts(namespace)
    refused: dict[PendingWrite, Exception] = {}
    for errand in errands:
        try:
            if errand.check is not None:
                errand.check()
            state.check(errand.writes)
            quotas.charge(accounts, errand.admission, gone=errand.gone)
        except Exception as fault:  # noqa: BLE001 - one writer's fault is not the others'
            refused[errand] = fault
    accepted = [errand for errand in errands if errand not in refused]
    writes = [write for errand in accepted for write in errand.writes]
    if writes:
        written = {write.ref for write in writes}
        charges = [charge for charge in accounts.charges() if charge.ref not in written]
        records = iter(await state.commit([*writes, *quota_writes(stage, charges)]))
        for errand in accepted:
            errand.records = [next(records) for _ in errand.writes]
    return refused


def quota_writes(stage: ServerContext, charges: Sequence[QuotaCharge]) -> list[Write]:
    """The statuses of quotas that change; the caller holds them."""
    return [write for charge in charges if (write := _write(stage, charge)) is not None]


def _write(stage: ServerContext, charge: QuotaCharge) -> Write | None:
    record = stage.state.get(charge.ref)
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

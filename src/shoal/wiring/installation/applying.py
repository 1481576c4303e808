"""Applies an installation: the record first, then the objects stage by stage, then waits, then the smoke test.

It may be killed before and after each write. Applying is idempotent and the record is written before the first object,
so that another run completes the installation and `shoal uninstall` finds everything.

Rejected: one pass without stages. A Deployment whose account does not exist yet has pods that are refused for a while,
and a ClusterPolicy whose definition is not established cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.install.inventory import DEPLOYED, FAILED, ROLLING_BACK, FailedRevision, ReleaseRecord, Revision
from shoal.install.manifest import STAGES, Address, address_of, stage_of, stays_with_data
from shoal.install.values.reading import ChartValues
from shoal.units.errors import UserError, Where
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.gpu_test import GpuTest
from shoal.wiring.installation.preparing import Preparation
from shoal.wiring.installation.release_store import save_record
from shoal.wiring.installation.stage_waits import NotReadyError, StageWaits
from shoal.wiring.installation.stored_versions import store_in_new_versions

Obj = dict[str, Any]
_NAMESPACE, _DEFINITIONS, _STACK = STAGES[0], STAGES[1], STAGES[-1]


class Patience(msgspec.Struct, frozen=True):
    waits: bool = True
    timeout_s: float = 600.0


class Work(msgspec.Struct, frozen=True):
    """What is applied and removed, in which order the stages say."""

    objects: tuple[Obj, ...]
    removed: tuple[Address, ...] = ()
    tested: ChartValues | None = None
    """The values of the smoke test; None: there is none."""


class Installer:
    def __init__(self, writer: ClusterWriter, report: Callable[[str], None], patience: Patience | None = None) -> None:
        self._writer = writer
        self._report = report
        self._patience = patience or Patience()

    async def apply(self, prepared: Preparation) -> ReleaseRecord:
        """Raises NotReadyError if something is not ready in time; the record then says `failed`."""
        values = prepared.values
        work = Work(
            prepared.plan.applied,
            prepared.plan.removed,
            values if values.get("smokeTest.enabled") else None,
        )
        return await self._carry_out(prepared.record, work)

    async def upgrade(self, prepared: Preparation, *, rolls_back: bool) -> ReleaseRecord:
        """The same; `rolls_back`: if it is not ready in time, the present revision is applied again."""
        present = prepared.present
        try:
            return await self.apply(prepared)
        except NotReadyError as error:
            if not rolls_back or present is None or present.state != DEPLOYED:
                raise
            self._report(f"{error}; revision {present.current.number} is applied again")
            # Also what the failed revision has added is in its inventory.
            latest = msgspec.structs.replace(
                prepared.record, former=present.former, current=present.current, failed=_failed(prepared.record, error)
            )
            try:
                await self._return_to(latest, present.current)
            except NotReadyError as second:
                what = f"{error}; revision {present.current.number} was applied again and is not ready either: {second}"
                raise NotReadyError(what) from None
            what = f"{error}; revision {present.current.number} is in force again; shoal status shows what failed"
            raise NotReadyError(what) from None

    async def roll_back(self, record: ReleaseRecord) -> ReleaseRecord:
        """Apply the objects of the former revision as they were recorded. Raises UserError without one.

        Definitions are not rolled back: a newer one serves the older versions. A way back that was interrupted is
        completed.
        """
        if record.state == ROLLING_BACK:
            return await self._return_to(record, record.current)
        if record.former is None:
            what = f"release {record.name} has no former revision"
            raise UserError(
                what, where=Where(path="--rollback"), fix="change values with: shoal upgrade --set NAME=VALUE"
            )
        target = msgspec.structs.replace(record.former, number=record.current.number + 1)
        latest = msgspec.structs.replace(record, current=target, former=record.current, failed=None)
        return await self._return_to(latest, target)

    async def _return_to(self, record: ReleaseRecord, target: Revision) -> ReleaseRecord:
        staying = [one for one in record.inventory if stays_with_data(one.kind)]
        wanted = {*staying, *map(address_of, target.objects)}
        stale = [one for one in reversed(record.inventory) if one not in wanted]
        inventory = tuple(dict.fromkeys((*map(address_of, target.objects), *record.inventory)))
        starting = msgspec.structs.replace(record, state=ROLLING_BACK, inventory=inventory)
        return await self._carry_out(starting, Work(target.objects, tuple(stale)))

    async def _carry_out(self, record: ReleaseRecord, work: Work) -> ReleaseRecord:
        for obj in work.objects:
            if stage_of(obj["kind"]) == _NAMESPACE:
                await self._writer.apply(obj)
        await save_record(self._writer, record)
        waits = StageWaits(self._writer, self._report, self._writer.clock.seconds() + self._patience.timeout_s)
        try:
            await self._apply_stages(record, work, waits)
            definitions = [address_of(obj) for obj in work.objects if stage_of(obj["kind"]) == _DEFINITIONS]
            await store_in_new_versions(self._writer, definitions, self._report)
            if work.tested is not None and self._patience.waits:
                await GpuTest(self._writer, self._report, waits).run(record.release, work.tested)
        except NotReadyError as error:
            failed = record.failed or _failed(record, error)
            await save_record(self._writer, msgspec.structs.replace(record.with_state(FAILED), failed=failed))
            raise
        there = set(map(address_of, work.objects))
        # What is not applied again and stays belongs to the release.
        left = tuple(one for one in record.inventory if one in there or stays_with_data(one.kind))
        latest = msgspec.structs.replace(record.with_state(DEPLOYED), inventory=left)
        await save_record(self._writer, latest)
        return latest

    async def _apply_stages(self, record: ReleaseRecord, work: Work, waits: StageWaits) -> None:
        for stage in STAGES[1:]:
            objects = [obj for obj in work.objects if stage_of(obj["kind"]) == stage]
            for obj in objects:
                await self._writer.apply(obj)
            if stage == _STACK:
                for address in work.removed:
                    await self._writer.delete(address)
            # Without the definitions nothing else can be applied.
            if objects and (self._patience.waits or stage == _DEFINITIONS):
                await waits.until_ready(stage, [address_of(obj) for obj in objects], record.namespace)
            if objects:
                self._report(f"{stage}: {_applied(len(objects), is_ready=self._patience.waits)}")


def _failed(record: ReleaseRecord, error: NotReadyError) -> FailedRevision:
    return FailedRevision(record.current.version, record.current.values, str(error))


def _applied(number: int, *, is_ready: bool) -> str:
    counted = "1 object" if number == 1 else f"{number} objects"
    return f"{counted} ready" if is_ready else f"{counted} applied"

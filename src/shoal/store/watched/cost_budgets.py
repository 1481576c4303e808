"""Watches what budgets have spent: one ConfigMap beside the Lease of Shoal, which the recorder of the history writes.

Guarantees: only the ConfigMap in that namespace counts, so that tenants cannot change it; one that is missing, cannot
be read or is older than an hour refuses no work. Nothing waits for it longer than a few seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from shoal.api.budget_report import CONFIG_KEY, CONFIG_MAP, BudgetReport, check_budget_report
from shoal.api.cost_budgets import NO_BUDGETS, CostBudgets, cost_budgets_of
from shoal.api.decode import convert
from shoal.client.context import Context
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import CONFIG_MAPS
from shoal.client.port import Select
from shoal.units.errors import UserError, Where

_log = logging.getLogger("shoal.queues")
_PATIENCE_S = 10.0


class ReportMap(msgspec.Struct):
    data: dict[str, str] | None = None


class WatchedCostBudgets:
    def __init__(self, context: Context, namespace: str) -> None:
        select, outage = Select(fields=f"metadata.name={CONFIG_MAP}"), context.informers.outage
        self._informer = Informer(context.api, CONFIG_MAPS, context.clock, context.draw, select, namespace, outage)
        self._clock = context.clock
        self._where = Where(obj=f"ConfigMap {namespace}/{CONFIG_MAP}").below("data").key(CONFIG_KEY)
        self._then: list[Callable[[CostBudgets], None]] = []
        self.now: CostBudgets = NO_BUDGETS
        self._informer.on_change(self._changed)

    def on_change(self, then: Callable[[CostBudgets], None]) -> None:
        self._then.append(then)

    async def synced(self) -> None:
        """Returns when the ConfigMap was read, or a moment later where it cannot be read."""
        known = asyncio.ensure_future(self._informer.synced())
        late = asyncio.ensure_future(self._clock.sleep(_PATIENCE_S))
        try:
            await asyncio.wait((known, late), return_when=asyncio.FIRST_COMPLETED)
            if not known.done():
                _log.warning("%s cannot be read yet: no budget holds work back", self._where)
        finally:
            known.cancel()
            late.cancel()

    async def run(self) -> None:
        """Until cancelled."""
        await self._informer.run()

    def _changed(self, _before: Item | None, after: Item | None) -> None:
        try:
            found = NO_BUDGETS if after is None else budgets_in(after.read(ReportMap), self._where)
        except (UserError, msgspec.DecodeError) as error:
            _log.warning("%s cannot be read, no budget holds work back: %s", self._where, error)
            found = NO_BUDGETS
        self.now = found
        for then in self._then:
            then(found)


def budgets_in(written: ReportMap, where: Where) -> CostBudgets:
    """Raises UserError for a report of another form."""
    report = report_in(written, where)
    return NO_BUDGETS if report is None else cost_budgets_of(report)


def report_in(written: ReportMap, where: Where) -> BudgetReport | None:
    text = (written.data or {}).get(CONFIG_KEY)
    if text is None:
        return None
    try:
        report = convert(msgspec.json.decode(text), BudgetReport, where)
    except msgspec.DecodeError as error:
        raise UserError(f"is no JSON: {error}", where=where) from None
    check_budget_report(report, where)
    return report

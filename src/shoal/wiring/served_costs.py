"""Serves costs beside the recorder of the history: hourly prices as metrics, and OpenCost's API at an address of
loopback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from shoal.api.meta import Namespace
from shoal.client.context import Context
from shoal.client.kind import NAMESPACES
from shoal.controllers.history.budget_publisher import BudgetPublisher
from shoal.cost.budgets import BudgetLine
from shoal.cost.cost_settings import CostSettings
from shoal.cost.hourly_prices import held_gpus, hourly_prices
from shoal.cost.records import Holding, Machine
from shoal.cost.report import PriceBasis
from shoal.store.history.allocation_reader import AllocationReader
from shoal.store.history.budget_reader import budget_report, read_budgets
from shoal.store.history.history import ReaderOf
from shoal.store.history.team_budgets import BudgetedNamespace, with_team_budgets
from shoal.telemetry.allocation_endpoint import AllocationEndpoint, AllocationSettings
from shoal.telemetry.prices import CostFigures
from shoal.units.errors import UserError

_log = logging.getLogger("shoal.cost")
_INTERVAL_S = 60.0
_BUDGETS_S = 300.0
_LEAST_S = 1.0


class PriceFigures:
    """What was computed last; `run` computes it again each minute."""

    def __init__(
        self,
        context: Context,
        settings: CostSettings,
        folder: Path,
        machines: Callable[[], Sequence[Machine]],
        holdings: Callable[[], Sequence[Holding]],
        reader: ReaderOf | None = None,
        publisher: BudgetPublisher | None = None,
    ) -> None:
        """`publisher`: writes what the budgets have spent, for admission."""
        self._publisher = publisher
        self._context, self._settings = context, settings
        self._machines, self._holdings = machines, holdings
        self._folder, self._reader = folder, reader
        self._budgets: list[BudgetLine] = []
        self._budgets_s = 0.0
        self._fault = ""
        self.figures = CostFigures()

    async def run(self) -> None:
        # Without them the first report would lack the budgets of teams, and work that they hold back would start.
        await self._context.informers.of(NAMESPACES).synced()
        while True:
            await self._read_budgets()
            self.compute()
            # Until the first nodes were seen, the next look comes soon. Their prices may be unknown for ever.
            wait = _INTERVAL_S if self.figures.machines else _LEAST_S
            await asyncio.gather(self._context.clock.sleep(wait), asyncio.sleep(_LEAST_S))

    async def _read_budgets(self) -> None:
        """Every five minutes, in a thread."""
        now_s = self._context.clock.seconds()
        if abs(now_s - self._budgets_s) < _BUDGETS_S:
            return
        self._budgets_s = now_s
        file = with_team_budgets(self._settings.file, self._namespaces())
        if not file.budgets and not self._budgets:
            return
        settings = msgspec.structs.replace(self._settings, file=file)
        try:
            now_ms = round(now_s * 1000)
            found = await asyncio.to_thread(read_budgets, self._folder, settings, now_ms, self._reader)
        except UserError as error:
            # A price that is missing, or no record yet.
            self._budgets = []
            self._warn(f"budgets cannot be computed, and hold no work back: {error}")
            return
        self._budgets = found.lines
        notes = found.notes()
        self._warn(f"budgets count less than was spent: {'; '.join(notes)}" if notes else "")
        if self._publisher is not None:
            await self._publisher.publish(budget_report(found, file.budgets, file.currency))

    def _namespaces(self) -> list[BudgetedNamespace]:
        found = []
        for item in self._context.informers.of(NAMESPACES):
            meta = item.read(Namespace).metadata
            found.append(BudgetedNamespace(meta.name, meta.labels, meta.annotations))
        return found

    def _warn(self, words: str) -> None:
        """Each once, while it lasts."""
        if words and self._fault != words:
            _log.warning("%s", words)
        self._fault = words

    def compute(self) -> None:
        now_s = self._context.clock.seconds()
        today = datetime.fromtimestamp(now_s, UTC).date()
        basis = PriceBasis(self._settings.file, self._settings.where, today, self._settings.mode)
        machines = self._machines()
        prices = hourly_prices(machines, basis, round(now_s * 1000))
        self.figures = CostFigures(prices, machines, held_gpus(self._holdings()), self._budgets)


async def serve_costs(context: Context, reader: AllocationReader, address: tuple[str, int]) -> None:
    """Until it is cancelled. Raises UserError where the address cannot be had."""
    endpoint = AllocationEndpoint(reader, AllocationSettings(*address), context.clock.seconds)
    await endpoint.start()
    try:
        await asyncio.Event().wait()
    finally:
        await endpoint.close()

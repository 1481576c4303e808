"""Serves costs beside the recorder of the history: hourly prices as metrics, and OpenCost's API at an address of
loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from shoal.client.context import Context
from shoal.cost.cost_settings import CostSettings
from shoal.cost.hourly_prices import held_gpus, hourly_prices
from shoal.cost.records import Holding, Machine
from shoal.cost.report import PriceBasis
from shoal.store.history.allocation_reader import AllocationReader
from shoal.telemetry.allocation_endpoint import AllocationEndpoint, AllocationSettings
from shoal.telemetry.prices import CostFigures

_INTERVAL_S = 60.0
_LEAST_S = 1.0


class PriceFigures:
    """What was computed last; `run` computes it again each minute."""

    def __init__(
        self,
        context: Context,
        settings: CostSettings,
        machines: Callable[[], Sequence[Machine]],
        holdings: Callable[[], Sequence[Holding]],
    ) -> None:
        self._context, self._settings = context, settings
        self._machines, self._holdings = machines, holdings
        self.figures = CostFigures()

    async def run(self) -> None:
        while True:
            self.compute()
            # Until the first nodes were seen, the next look comes soon.
            wait = _INTERVAL_S if self.figures.prices else _LEAST_S
            await asyncio.gather(self._context.clock.sleep(wait), asyncio.sleep(_LEAST_S))

    def compute(self) -> None:
        now_s = self._context.clock.seconds()
        today = datetime.fromtimestamp(now_s, UTC).date()
        basis = PriceBasis(self._settings.file, self._settings.where, today, self._settings.mode)
        machines = self._machines()
        prices = hourly_prices(machines, basis, round(now_s * 1000))
        self.figures = CostFigures(prices, machines, held_gpus(self._holdings()))


async def serve_costs(context: Context, folder: Path, settings: CostSettings, address: tuple[str, int]) -> None:
    """Until it is cancelled. Raises UserError where the address cannot be had."""
    reader = AllocationReader(folder, settings)
    endpoint = AllocationEndpoint(reader, AllocationSettings(*address), context.clock.seconds)
    await endpoint.start()
    try:
        await asyncio.Event().wait()
    finally:
        await endpoint.close()

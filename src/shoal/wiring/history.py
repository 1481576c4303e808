"""Runs the recorder of the history of devices, with its storage in a folder."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from shoal.client.context import Context
from shoal.client.fetched_text import fetched_text
from shoal.client.kind import NAMESPACES, NODES, PODS
from shoal.client.served import Served
from shoal.wiring.process_tasks import ProcessTasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.store.history.history import ReaderOf
    from shoal.store.history.samples import DeviceSample
    from shoal.wiring.run_choice import RunChoice
    from shoal.wiring.telemetry import Telemetry

_PATIENCE_S = 5.0


def start_history(
    tasks: ProcessTasks, context: Context, served: Served, choice: RunChoice, telemetry: Telemetry | None
) -> None:
    """Of a choice with a history. The caller starts the caches afterwards. While another process writes the history,
    this one tries again."""
    folder = choice.history
    if folder is None:
        return
    for kind in (NODES, PODS, NAMESPACES):
        context.informers.of(kind)

    async def run() -> None:
        # Imported here: a process without a history imports nothing of it.
        import aiohttp

        from shoal.controllers.history.budget_publisher import BudgetPublisher
        from shoal.controllers.history.recorder import HistoryRecorder
        from shoal.controllers.history.sampler import Sampler
        from shoal.cost.prices.recorded_prices import PriceRecorder
        from shoal.store.history.history import open_history
        from shoal.wiring.served_costs import PriceFigures

        history = open_history(folder, choice.retention)
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE_S)) as session:
                recorded = PriceRecorder(choice.costs.file)
                recorder = HistoryRecorder(context, history, served, tasks.is_urgent, recorded)
                has_other = choice.samples_from is not None
                store = _leave_out if has_other else recorder.store_samples
                sampler = Sampler(context, partial(fetched_text, session), store, recorder.part_of)
                reader = _reader(choice)
                publisher = BudgetPublisher(context, choice.own.leader_election.resource_namespace)
                prices = PriceFigures(
                    context, choice.costs, folder, recorder.machines, recorder.holdings, reader, publisher
                )
                if telemetry is not None:
                    telemetry.follow_prices(lambda: prices.figures)
                async with asyncio.TaskGroup() as group:
                    group.create_task(recorder.run())
                    if not has_other or choice.alerts is not None:
                        group.create_task(sampler.run())
                    group.create_task(prices.run())
                    if choice.alerts is not None:
                        from shoal.wiring.alerts import run_alerts

                        inside = (history, sampler, telemetry)
                        group.create_task(run_alerts((context, session), inside, choice.alerts, choice.alert_sources))
        finally:
            history.close()

    tasks.start("history", run)
    if choice.cost_address is not None:
        from shoal.store.history.allocation_reader import AllocationReader
        from shoal.wiring.served_costs import serve_costs

        costs = AllocationReader(folder, choice.costs, _reader(choice))
        # Beside the history, which goes on where the address is used by another process.
        tasks.start("costs", partial(serve_costs, context, costs, choice.cost_address))


def _reader(choice: RunChoice) -> ReaderOf | None:
    if choice.samples_from is None:
        return None
    from shoal.store.history.prometheus_samples import prometheus_reader

    return prometheus_reader(choice.samples_from)


def _leave_out(samples: Sequence[DeviceSample]) -> None:
    """A Prometheus server has them."""

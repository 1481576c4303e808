"""Implements `shoal scale forecast`: predicts the demand of a namespace from the history, and writes it to a buffer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.cluster_access import AccessOptions, speak
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.autoscale.demand.forecast import DemandForecast
    from shoal.cli.object_source import Source
    from shoal.client.port import Api

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, kw_only=True)
class ForecastOptions:
    namespace: Annotated[
        str, typer.Argument(metavar="NAMESPACE", help="Whose demand is predicted.", show_default=False)
    ]
    buffer: Annotated[
        str, typer.Option(metavar="NAME", help="Write the forecast to this CapacityBuffer of the namespace.")
    ] = ""
    quantile: Annotated[
        float,
        typer.Option(metavar="PART", help="The part of earlier weeks whose demand was at most the predicted one."),
    ] = 0.9
    time_zone: Annotated[str, typer.Option("--time-zone", metavar="ZONE", help="Of the hours of the week.")] = "UTC"
    history: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the history; by default that of the cluster of shoal up."),
    ] = None
    output: TextOutput = TEXTS[0]


@with_options
def forecast(options: ForecastOptions, access: AccessOptions) -> None:
    """Predict the demand for GPUs of each hour of the week, with the error that such predictions had.

    At least two recorded weeks are needed. With --buffer, node scaling keeps room for what is predicted.
    """
    checked(options.output, TEXTS)
    if not 0 < options.quantile <= 1:
        raise UserError(f"{options.quantile:g} is not a part", where=Where(path="--quantile"), fix="as in 0.9")
    from shoal.autoscale.capacity_buffers.forecast_text import forecast_text

    found, until_ms = _forecast(options)
    if options.buffer:
        text = forecast_text(found, until_ms, options.time_zone)
        speak(access.access_for_change(), lambda api: _write(api, options.namespace, options.buffer, text))
    if options.output != TEXTS[0]:
        import msgspec

        from shoal.cli.formats import write

        of = {"namespace": options.namespace, "timeZone": options.time_zone}
        write({**of, **msgspec.to_builtins(found)}, options.output)
        return
    for line in _lines(options, found):
        typer.echo(line)


def _forecast(options: ForecastOptions) -> tuple[DemandForecast, int]:
    from shoal.autoscale.demand.forecast import HOURS, LEAST_WEEKS, forecast_of
    from shoal.cli.cluster_folder import cluster_folder, history_folder
    from shoal.store.history.demand_hours import recorded_demand
    from shoal.store.history.history import read_history
    from shoal.units.calendar_windows import zone_of

    zone = zone_of(options.time_zone)
    given = options.history
    history = read_history(history_folder(cluster_folder(None)) if given is None else given.expanduser().absolute())
    try:
        hours = recorded_demand(history.ledger, options.namespace, zone)
        until_ms = history.ledger.recorded_ms() or 0
    finally:
        history.close()
    found = forecast_of(hours, options.quantile)
    if found is None:
        days = sum(each.gpus is not None for each in hours) / 24
        what = f"{days:.1f} days were recorded; a forecast needs {LEAST_WEEKS * HOURS // 24}"
        raise UserError(what, where=Where(path="--history"), fix="wait until the history has two whole weeks")
    return found, until_ms


def _lines(options: ForecastOptions, found: DemandForecast) -> list[str]:
    error = found.error
    lines = [
        f"GPUs of namespace {options.namespace}, by hour of the week ({options.time_zone}), from {found.weeks} weeks:"
    ]
    lines.append("     " + "".join(f"{hour:>5}" for hour in range(0, 24, 2)))
    for day, name in enumerate(_DAYS):
        # The higher of two hours, so that a day fits on a line.
        pairs = [found.gpus[day * 24 + hour : day * 24 + hour + 2] for hour in range(0, 24, 2)]
        cells = [[each for each in pair if each is not None] for pair in pairs]
        lines.append(f"{name:<5}" + "".join(f"{max(each):>5g}" if each else f"{'-':>5}" for each in cells))
    lines.append(
        f"Error: {error.mean_gpus:.2f} GPUs as a mean of {error.hours:,} hours, each predicted from the weeks before "
        f"it; demand was higher in {error.short_share:.1%} of them"
    )
    if options.buffer:
        lines.append(f"capacitybuffer {options.namespace}/{options.buffer} has the forecast")
    return lines


async def _write(api: Api, namespace: str, name: str, text: str) -> None:
    from shoal.autoscale.capacity_buffers.forecast_text import FORECAST
    from shoal.client.ecosystem_kinds import CAPACITY_BUFFERS
    from shoal.client.port import Patch
    from shoal.client.refusals import NotFoundError

    body: dict[str, Any] = {"metadata": {"annotations": {FORECAST: text}}}
    try:
        await api.patch(CAPACITY_BUFFERS, namespace, name, Patch("merge", body))
    except NotFoundError as error:
        raise UserError(
            f"CapacityBuffer {namespace}/{name} not found", where=Where(path="--buffer"), fix="create it"
        ) from error


def buffer_lines(source: Source) -> list[str]:
    """A line for each CapacityBuffer with a forecast: what it predicts for this hour, and its error."""
    from datetime import UTC, datetime

    from shoal.autoscale.capacity_buffers.buffer import buffer_of
    from shoal.autoscale.capacity_buffers.forecast_text import FORECAST, forecast_words, read_forecast

    # The hour of the user's clock: nothing is decided by it here.
    now = datetime.now(UTC)  # noqa: TID251 - of this moment
    lines = []
    for buffer in map(buffer_of, _buffers(source)):
        if FORECAST in buffer.annotations:
            try:
                words = forecast_words(read_forecast(buffer.annotations[FORECAST], buffer.where), now)
            except UserError as error:
                words = error.what
            lines.append(f"capacitybuffer {buffer.namespace}/{buffer.name}: {words}")
    return lines


def _buffers(source: Source) -> list[dict[str, Any]]:
    from shoal.api.decode import Unknown

    if source.access is not None:
        return speak(source.access, _listed)
    values = (each.value for each in source.documents)
    return [each.raw for each in values if isinstance(each, Unknown) and each.kind == "CapacityBuffer"]


async def _listed(api: Api) -> list[dict[str, Any]]:
    from shoal.client.ecosystem_kinds import CAPACITY_BUFFERS
    from shoal.client.refusals import ForbiddenError, NotFoundError

    try:
        found = await api.list(CAPACITY_BUFFERS)
    except (ForbiddenError, NotFoundError):
        return []
    return [item.obj() for item in found.items]

"""What the commands about costs read: the history, the price file, and the window of time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_folder import cluster_folder, history_folder
from shoal.cli.completion_values import one_of
from shoal.cli.known_names import check_known
from shoal.cli.prometheus_options import PrometheusOptions
from shoal.units.errors import Where

if TYPE_CHECKING:
    from datetime import date, tzinfo
    from decimal import Decimal

    from shoal.cost.price_curves import PriceCurve
    from shoal.cost.prices.machine_prices import MachineKey, UnknownPrice
    from shoal.cost.prices.price_file import PriceFile
    from shoal.cost.records import Machine, QuotaSpan, Records, Wait
    from shoal.cost.report import PriceBasis
    from shoal.cost.statement import Period
    from shoal.store.history.history import UsageHistory
    from shoal.units.calendar_windows import TimeWindow

_MOST_BYTES = 4 << 20
WEIGHTS = ("model", "opencost", "gpu-memory-weighted")
MIG_BASES, SHARE_BASES = ("memory", "compute"), ("replica", "use")


@dataclass(frozen=True, kw_only=True)
class CostSource(PrometheusOptions):
    window: Annotated[
        str,
        typer.Option(
            metavar="WINDOW",
            help="30d, today, yesterday, week, lastweek, month, lastmonth, 2026-10, 2026-10-25 or FROM,TO.",
        ),
    ] = "30d"
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Where days and months begin: UTC, Europe/Berlin.")] = (
        "UTC"
    )
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Prices that the catalogue does not have, as YAML or JSON.")
    ] = None
    history: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the history; by default that of the cluster of shoal up."),
    ] = None
    weights: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="How the price of a node is divided: model, opencost or gpu-memory-weighted.",
            autocompletion=one_of(WEIGHTS),
        ),
    ] = WEIGHTS[0]

    mig_by: Annotated[
        str,
        typer.Option(
            metavar="MEASURE",
            help="By what a MIG instance has its part of a GPU: memory or compute; by default as the price file says.",
            autocompletion=one_of(MIG_BASES),
        ),
    ] = ""
    share_by: Annotated[
        str,
        typer.Option(
            metavar="MEASURE",
            help="By what pods that share a GPU have theirs: replica or use; by default as the price file says.",
            autocompletion=one_of(SHARE_BASES),
        ),
    ] = ""

    def open(self) -> CostFacts:
        """Raises UserError for an option that is wrong and where there is no history."""
        from shoal.store.history.history import read_history
        from shoal.store.history.team_budgets import with_team_budgets
        from shoal.units.calendar_windows import window_of, without_future, zone_of

        check_known(self.weights, WEIGHTS, "mode", Where(path="--weights"))
        check_known(self.mig_by, ("", *MIG_BASES), "measure", Where(path="--mig-by"))
        check_known(self.share_by, ("", *SHARE_BASES), "measure", Where(path="--share-by"))
        zone = zone_of(self.time_zone)
        folder = history_folder(cluster_folder(None)) if self.history is None else self.history.expanduser().absolute()
        history = read_history(folder, self.reader())
        file = self._by_measures(with_team_budgets(price_file(self.prices), history.team_budgets.read()))
        recorded, now = history.ledger.recorded_ms(), _now_ms()
        window = window_of(self.window, now if recorded is None else recorded, zone)
        window = without_future(window, history.end_ms(now))
        return CostFacts(self, history, zone, window, file)

    def _by_measures(self, file: PriceFile) -> PriceFile:
        import msgspec

        from shoal.cost.prices import price_file as prices

        mig_by = next((one for one in prices.MIG_BASES if one == self.mig_by), file.mig_by)
        share_by = next((one for one in prices.SHARE_BASES if one == self.share_by), file.share_by)
        return msgspec.structs.replace(file, mig_by=mig_by, share_by=share_by)


class CostFacts:
    """The history of a window, read once."""

    def __init__(
        self, source: CostSource, history: UsageHistory, zone: tzinfo, window: TimeWindow, file: PriceFile
    ) -> None:
        self.source = source
        self.history = history
        self.zone = zone
        self.window = window
        self.file = file
        self.missing: list[UnknownPrice] = []
        self.since_ms = history.ledger.since_ms() or 0
        """When the history began."""

    def days(self) -> list[tuple[int, date]]:
        from shoal.units.calendar_windows import day_starts

        return day_starts(self.window, self.zone)

    def records(self, *, by_day: bool = False) -> Records:
        """With the shares of GPUs by the measures of the price file."""
        from shoal.cost.share_basis import with_share_basis

        return with_share_basis(self.recorded(by_day=by_day), self.file)

    def recorded(self, *, by_day: bool = False) -> Records:
        from shoal.cost.share_basis import moments_of_use

        days = [start for start, _ in self.days()] if by_day else []
        moments = moments_of_use(self.file, self.window, days)
        return self.history.records(self.window.start_ms, self.window.end_ms, moments)

    def period(self, *, by_day: bool) -> Period:
        from shoal.cost.statement import Period, whole_period

        return Period(self.window, tuple(start for start, _ in self.days())) if by_day else whole_period(self.window)

    def basis(self, machines: tuple[Machine, ...]) -> PriceBasis:
        from datetime import UTC, datetime

        from shoal.cost.report import PriceBasis
        from shoal.cost.weights import WEIGHT_MODES

        return PriceBasis(
            file=self.file,
            where=Where(file=str(self.source.prices)) if self.source.prices else Where(path="--prices"),
            today=datetime.fromtimestamp(self.window.end_ms / 1000, UTC).date(),
            mode=next(one for one in WEIGHT_MODES if one == self.source.weights),
            measured_watts=self._watts(machines) if self.file.on_premises else {},
        )

    def curves(self, records: Records) -> dict[str, PriceCurve]:
        """The billing price of every machine that has one; a note names the others. Raises UserError that asks for
        prices where no machine has one."""
        return self.curves_of(records.machines, self.basis(records.machines))

    def curves_of(self, machines: tuple[Machine, ...], basis: PriceBasis) -> dict[str, PriceCurve]:
        from shoal.cost.prices.billing import billing
        from shoal.cost.prices.machine_prices import machine_prices

        prices = machine_prices(machines, basis.file, basis.today, basis.measured_watts)
        prices.check(basis.where)
        self.missing = prices.unknown
        return billing(machines, prices, basis.file, self.window).curves

    def month_end_ms(self) -> int:
        """Of the month in which the window ends."""
        from datetime import datetime

        from shoal.units.calendar_windows import month_window

        last = datetime.fromtimestamp((self.window.end_ms - 1) / 1000, self.zone)
        return month_window(last.year, last.month, self.zone).end_ms

    def waits(self) -> list[Wait]:
        return self.history.ledger.waits(self.window.start_ms, self.window.end_ms)

    def quotas(self) -> list[QuotaSpan]:
        """What was recorded of them in the window."""
        return self.history.quotas.read(self.window.start_ms, self.window.end_ms)

    def notes(self) -> list[str]:
        """What a reader must know about the time that was recorded, and of prices that `curves` did not find."""
        from shoal.cost.prices.machine_prices import missing_note

        missing = missing_note(self.missing)
        return [*([missing] if missing else []), *self.history.notes(self.window.start_ms, _now_ms())]

    def _watts(self, machines: tuple[Machine, ...]) -> dict[MachineKey, Decimal]:
        return self.history.measured_watts(machines, self.window.start_ms, self.window.end_ms)


def _now_ms() -> int:
    from shoal.client.clock import WallClock

    return round(WallClock().seconds() * 1000)


def price_file(path: Path | None) -> PriceFile:
    """Without a path one without prices. Raises UserError for a file that is none."""
    from shoal.api.files import read_whole
    from shoal.api.yaml_text import read_yaml
    from shoal.cost.prices.price_file import PriceFile, read_price_file
    from shoal.units.errors import UserError

    if path is None:
        return PriceFile()
    name = str(path)
    try:
        text = read_whole(path.expanduser(), _MOST_BYTES).decode()
    except UnicodeDecodeError:
        raise UserError("is not text in UTF-8", where=Where(file=name)) from None
    documents = [document for _, document in read_yaml(text, name)]
    if len(documents) > 1:
        raise UserError("has several documents", where=Where(file=name), fix="write one map of prices")
    return read_price_file(documents[0] if documents else None, name)

"""The options of `shoal run` and `shoal up` about costs and alerts, which both compute from their history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.wiring.run_choice import RunChoice

_LOOPBACK = "127.0.0.1"
_MONTH_MS = 32 * 24 * 3_600_000
"""A little more than the longest month."""


@dataclass(frozen=True, kw_only=True)
class HistoryUse:
    prices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Prices that the catalogue does not have: for metrics, pages and the cost API."
        ),
    ] = None
    cost_port: Annotated[
        int | None,
        typer.Option(
            "--cost-port", metavar="N", min=1, max=65535, help=f"Serve OpenCost's API on this port of {_LOOPBACK}."
        ),
    ] = None

    alerts_to: Annotated[
        list[str] | None,
        typer.Option(
            "--alerts-to",
            metavar="TARGET",
            help="Evaluate alerts without Prometheus, and send them: events, alertmanager=URL, webhook=URL or none;"
            " repeatable.",
        ),
    ] = None

    history_retention: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="How long the history keeps what: raw=2d,5m=90d,1h=730d,ledger=730d,size=2G."
        ),
    ] = ""

    def of(self, choice: RunChoice) -> RunChoice:
        """The choice with these prices. Raises UserError for a file that is no price file, and without a history."""
        from msgspec.structs import replace

        from shoal.api.alert_targets import read_targets
        from shoal.cli.cost_source import price_file
        from shoal.cost.cost_settings import CostSettings

        given: dict[str, object] = {
            "--prices": self.prices,
            "--cost-port": self.cost_port,
            "--alerts-to": self.alerts_to,
        }
        given["--history-retention"] = self.history_retention or None
        name = next((name for name, value in given.items() if value is not None), "")
        if not name:
            return choice
        if choice.history is None:
            raise UserError("needs a history", where=Where(path=name), fix="name a folder with --history")
        costs = CostSettings()
        if self.prices is not None:
            costs = CostSettings(price_file(self.prices), Where(file=str(self.prices)))
        address = None if self.cost_port is None else (_LOOPBACK, self.cost_port)
        alerts = None if self.alerts_to is None else read_targets(self.alerts_to)
        retention = None
        if self.history_retention:
            from shoal.store.history.retention_text import read_retention

            where = Where(path="--history-retention")
            retention = read_retention(self.history_retention, where)
            enforced = next((one for one in costs.file.budgets if one.enforce), None)
            if enforced is not None and retention.ledger_ms < _MONTH_MS:
                what = f"ledger: is shorter than a month, and the budget of {' '.join(enforced.subject)} is enforced"
                raise UserError(what, where=where, fix="write ledger=32d or more")
        return replace(choice, costs=costs, cost_address=address, alerts=alerts, retention=retention)

    def arguments(self) -> list[str]:
        """The same options for another process, wherever that runs."""
        words = [] if self.prices is None else ["--prices", str(self.prices.expanduser().absolute())]
        words += [word for target in self.alerts_to or () for word in ("--alerts-to", target)]
        words += ["--history-retention", self.history_retention] if self.history_retention else []
        return words if self.cost_port is None else [*words, "--cost-port", str(self.cost_port)]

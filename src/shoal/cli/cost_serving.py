"""The options of `shoal run` and `shoal up` about costs, which both compute from their history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.wiring.run_choice import RunChoice

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class CostServing:
    prices: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Prices for metrics and the cost API that the catalogue does not have."),
    ] = None
    cost_port: Annotated[
        int | None,
        typer.Option(
            "--cost-port", metavar="N", min=1, max=65535, help=f"Serve OpenCost's API on this port of {_LOOPBACK}."
        ),
    ] = None

    def of(self, choice: RunChoice) -> RunChoice:
        """The choice with these prices. Raises UserError for a file that is no price file, and without a history."""
        from msgspec.structs import replace

        from shoal.cli.cost_source import price_file
        from shoal.cost.cost_settings import CostSettings

        if self.prices is None and self.cost_port is None:
            return choice
        if choice.history is None:
            name = "--cost-port" if self.prices is None else "--prices"
            raise UserError("needs a history", where=Where(path=name), fix="name a folder with --history")
        costs = CostSettings()
        if self.prices is not None:
            costs = CostSettings(price_file(self.prices), Where(file=str(self.prices)))
        address = None if self.cost_port is None else (_LOOPBACK, self.cost_port)
        return replace(choice, costs=costs, cost_address=address)

    def arguments(self) -> list[str]:
        """The same options for another process, wherever that runs."""
        words = [] if self.prices is None else ["--prices", str(self.prices.expanduser().absolute())]
        return words if self.cost_port is None else [*words, "--cost-port", str(self.cost_port)]

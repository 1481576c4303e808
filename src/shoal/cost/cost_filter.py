"""Leaves only the costs of pods with certain properties: of a team, a namespace, a job, a label."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.cost.records import Holding, Machine
from shoal.cost.report import CostReport
from shoal.cost.statement import GroupOf, dimension, total
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.money import cents

_KEPT = "\x1f"
"""What begins the groups of what is kept."""
_WHERE = Where(path="--filter")


class CostFilter:
    def __init__(self, texts: Iterable[str]) -> None:
        """`texts`: DIMENSION=VALUE. All must hold; of several values of a dimension, one. Raises UserError."""
        self._wanted: dict[str, set[str]] = {}
        for text in texts:
            name, sign, value = text.partition("=")
            if not sign:
                fix = "write DIMENSION=VALUE, as in team=red or label:app=chat"
                raise UserError(f"{excerpt(text)} is no filter", where=_WHERE, fix=fix)
            self._wanted.setdefault(name, set()).add(value)
        try:
            self._values = [(dimension(name), values) for name, values in self._wanted.items()]
        except UserError as error:
            raise error.at(_WHERE) from None

    def grouped(self, group_of: GroupOf) -> GroupOf:
        def group(held: Holding | None, machine: Machine) -> str:
            is_kept = all(value_of(held, machine) in values for value_of, values in self._values)
            return _KEPT + group_of(held, machine) if is_kept else ""

        return group

    def kept(self, report: CostReport) -> CostReport:
        """Of a report by `grouped`; its sum is that of what is kept."""
        rows = [
            msgspec.structs.replace(row, group=row.group.removeprefix(_KEPT))
            for row in report.rows
            if row.group.startswith(_KEPT)
        ]
        return msgspec.structs.replace(report, rows=rows, invoice=cents(total(rows)))

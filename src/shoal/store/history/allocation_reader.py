"""Answers requests to OpenCost's API from the history in a folder, which another process or task writes.

    window = reader.read(query, now_ms)   the records of the window
    window.answer(viewer)                 JSON, reduced to what the reader of the answer may see

Both take up to a second for a long window, and are called in a thread. Each reads the file anew, so that nothing is
kept between requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from shoal.cost.allocation_request import AllocationRequest, read_request
from shoal.cost.allocations import AllocationViewer, allocations
from shoal.cost.cost_settings import CostSettings
from shoal.cost.prices.machine_prices import MachineKey
from shoal.cost.records import Records
from shoal.cost.report import PriceBasis
from shoal.cost.share_basis import moments_of_use, with_share_basis
from shoal.store.history.history import ReaderOf, read_history


class WindowRecords(msgspec.Struct, frozen=True):
    request: AllocationRequest
    records: Records
    watts: dict[MachineKey, Decimal]
    notes: list[str]
    settings: CostSettings

    def namespaces(self) -> set[str]:
        return {one.holder.namespace for one in self.records.holdings}

    def answer(self, viewer: AllocationViewer | None) -> bytes:
        """`viewer`: None for a reader that sees all. Raises UserError that asks for the prices that are missing."""
        settings, request = self.settings, self.request
        basis = PriceBasis(
            file=settings.file,
            where=settings.where,
            today=datetime.fromtimestamp(request.window.end_ms / 1000, UTC).date(),
            mode=settings.mode,
            measured_watts=self.watts,
        )
        answer = allocations(self.records, request, basis, settings.cluster, viewer)
        document: dict[str, Any] = {"code": 200, "status": "success", "data": answer.sets}
        if notes := [*self.notes, *answer.notes]:
            document["warning"] = "; ".join(notes)
        return msgspec.json.encode(document)


class AllocationReader:
    def __init__(self, folder: Path, settings: CostSettings, reader: ReaderOf | None = None) -> None:
        self._folder, self._settings, self._reader = folder, settings, reader

    def read(self, query: Mapping[str, str], now_ms: int) -> WindowRecords:
        """Raises UserError for a request that is wrong, and where there is no history."""
        history = read_history(self._folder, self._reader)
        try:
            recorded = history.ledger.recorded_ms()
            request = read_request(query, now_ms if recorded is None else recorded, history.end_ms(now_ms))
            start, end = request.window
            steps = request.steps if len(request.steps) > 1 else ()
            records = history.records(start, end, moments_of_use(self._settings.file, request.window, steps))
            records = with_share_basis(records, self._settings.file)
            own = self._settings.file.on_premises
            watts = history.measured_watts(records.machines, start, end) if own else {}
            return WindowRecords(request, records, watts, history.notes(start, now_ms), self._settings)
        finally:
            history.close()

"""A history as one object: its ledger, its samples, and the records of a window for cost accounting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import msgspec

from shoal.cost.prices.machine_prices import MachineKey, machine_key
from shoal.cost.records import Holding, Machine, Records, Use, Wait, WantedRequest
from shoal.store.history.alert_rows import AlertRows
from shoal.store.history.created_rows import CreatedRows
from shoal.store.history.file_tables import open_for_reading, open_for_writing
from shoal.store.history.ledger import Ledger
from shoal.store.history.quota_spans import QuotaSpans
from shoal.store.history.sample_reader import SampleReader
from shoal.store.history.samples import Retention, Samples
from shoal.store.history.tables import Tables
from shoal.store.history.team_budgets import TeamBudgetRows
from shoal.store.history.use_rows import use_key
from shoal.units.calendar_windows import rfc3339

_STALE_MS = 5 * 60_000
_USUAL = 0.01
"""A request that at least one in a hundred pods with GPUs made is usual."""


ReaderOf = Callable[[Ledger], SampleReader]
"""A source of samples, for what the ledger says was held."""


class UsageHistory:
    def __init__(self, tables: Tables, retention: Retention | None = None, reader: ReaderOf | None = None) -> None:
        """`reader`: reads the samples from elsewhere; those of the history are then not read."""
        self.tables = tables
        self.ledger = Ledger(tables)
        self.samples = Samples(tables, self.ledger, retention)
        self.measured: SampleReader = self.samples if reader is None else reader(self.ledger)
        self.alerts = AlertRows(tables)
        self.created = CreatedRows(tables)
        self.team_budgets = TeamBudgetRows(tables)
        self.quotas = QuotaSpans(tables)

    def records(self, start_ms: int, end_ms: int, days: Sequence[int] = ()) -> Records:
        """What happened in the window. `days` divide the records of use."""
        return self._records(self.holdings(start_ms, end_ms, days), start_ms, end_ms)

    def records_without_use(self, start_ms: int, end_ms: int) -> Records:
        """As `records`, for sums that do not depend on use: samples are not read."""
        return self._records(self.ledger.holdings(start_ms, end_ms), start_ms, end_ms)

    def holdings(self, start_ms: int, end_ms: int, days: Sequence[int] = ()) -> dict[str, Holding]:
        """By the uid of the pod, with their use."""
        uses = self.measured.uses(start_ms, end_ms, days)
        held = self.ledger.holdings(start_ms, end_ms)
        for uid, one in held.items():
            if found := uses.get(use_key(uid)):
                held[uid] = msgspec.structs.replace(one, uses=_inside(found, one.start_ms))
        return held

    def _records(self, held: Mapping[str, Holding], start_ms: int, end_ms: int) -> Records:
        waits = self.ledger.waits(start_ms, end_ms)
        return Records(
            machines=tuple(self.ledger.machines(start_ms, end_ms)),
            holdings=tuple(held.values()),
            wanted=(*_waiting(waits), *_usual(waits)),
            gaps=tuple(self.ledger.gaps(start_ms, end_ms)),
        )

    def end_ms(self, now_ms: int) -> int:
        """Where the future begins: after what was recorded last (the clock of a simulated cluster may be ahead), or now
        where the recording has stopped."""
        recorded = self.ledger.recorded_ms()
        return now_ms if recorded is None or now_ms - recorded > _STALE_MS else recorded

    def notes(self, start_ms: int, now_ms: int) -> list[str]:
        """What a reader must know about the time that was recorded, of a window that begins at `start_ms`."""
        since, until, found = self.ledger.since_ms(), self.ledger.recorded_ms(), []
        if until is None:
            found.append("nothing was recorded yet")
        if since is not None and since > start_ms:
            found.append(f"the history begins at {rfc3339(since)}: what was held or free before is unknown")
        if until is not None and now_ms - until > _STALE_MS:
            found.append(f"nothing was recorded after {rfc3339(until)}")
        return [*found, *self.measured.notes()]

    def measured_watts(self, machines: Sequence[Machine], start_ms: int, end_ms: int) -> dict[MachineKey, Decimal]:
        """The mean power of the GPUs of each machine, of those that were measured. Of machines of one name, which may
        call their GPUs alike, each has the power of its own time."""
        whole = self.measured.power(start_ms, end_ms)
        names = Counter(one.name for one in machines)
        found: dict[MachineKey, Decimal] = {}
        for machine in machines:
            power = whole
            if names[machine.name] > 1:
                end = end_ms if machine.end_ms is None else min(end_ms, machine.end_ms)
                power = self.measured.power(max(start_ms, machine.start_ms), end)
            values = [power[device] for device in machine.devices if device in power]
            if values:
                found[machine_key(machine)] = Decimal(str(sum(values) / len(values) * len(machine.devices)))
        return found

    def forget(self, namespace: str) -> int:
        """Remove the names of a namespace, of its pods and of its teams; the number of changed records of the ledger.
        The caller is the one that writes."""
        with self.tables.transaction():
            count = self.ledger.forget(namespace)
            # Also those that were forgotten before.
            self.samples.forget_teams(self.ledger.nameless())
        return count

    def close(self) -> None:
        self.tables.close()


def open_history(folder: Path, retention: Retention | None = None) -> UsageHistory:
    """For the one process that records. Raises ConflictError while another one does, UserError for a bad folder."""
    return UsageHistory(open_for_writing(folder), retention)


def read_history(folder: Path, reader: ReaderOf | None = None) -> UsageHistory:
    """Raises UserError where there is none."""
    return UsageHistory(open_for_reading(folder), reader=reader)


def _inside(uses: Sequence[Use], start_ms: int) -> tuple[Use, ...]:
    """Slots of five minutes begin before the holding does."""
    return tuple(
        one if one.start_ms >= start_ms else msgspec.structs.replace(one, start_ms=start_ms)
        for one in uses
        if one.end_ms > start_ms
    )


def _waiting(waits: Sequence[Wait]) -> list[WantedRequest]:
    """Pods that wait together with equal requests are one request."""
    found: dict[tuple[int, int, int, int], list[tuple[int, int | None]]] = {}
    for one in waits:
        if one.gpus or one.share:
            found.setdefault(_request(one), []).append((one.start_ms, one.end_ms))
    return [
        WantedRequest(*request, start_ms=start, end_ms=end)
        for request, spans in found.items()
        for start, end in _union(spans)
    ]


def _usual(waits: Sequence[Wait]) -> list[WantedRequest]:
    """Every pod waits for a moment before it is bound, so the waits have the requests of all pods."""
    counts = Counter(_request(one) for one in waits if one.gpus or one.share)
    least = counts.total() * _USUAL
    return [WantedRequest(*request) for request, count in sorted(counts.items()) if count >= least]


def _request(one: Wait) -> tuple[int, int, int, int]:
    return one.gpus, one.share, one.cpu_milli, one.memory_mib


def _union(spans: Sequence[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    found: list[tuple[int, int | None]] = []
    for start, end in sorted(spans, key=lambda span: span[0]):
        if found and (found[-1][1] is None or start <= found[-1][1]):
            last = found[-1][1]
            found[-1] = (found[-1][0], None if last is None or end is None else max(last, end))
        else:
            found.append((start, end))
    return found

"""Costs and the history: the time of a statement, and the size, the queries and the ingestion of a history.

    python -m bench.cost [--gpus 1000] [--days 90] [--folder DIR]

One day of samples is ingested and compacted as a recorder does it; the blocks of that day are copied to the other days
with later times, because a day of samples takes as much space on any day.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from shoal.cost.price_curves import constant
from shoal.cost.records import PPM, DeviceShare, Holder, Holding, Machine, Records, Use, Wait, WantedRequest
from shoal.cost.statement import Period, dimension, statement
from shoal.store.history.history import UsageHistory, open_history
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.samples import DAY_MS, DeviceSample
from shoal.store.history.tables import StoredRow
from shoal.store.history.tables import Table as StoredTable
from shoal.units.calendar_windows import HOUR_MS, TimeWindow

_START = 1_790_812_800_000
_INTERVAL_MS = 15_000
_PODS_A_DAY = 10_000
_TEAMS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args(arguments)
    rows = [_statement()]
    with tempfile.TemporaryDirectory() as folder:
        rows += _history(chosen.folder or Path(folder), chosen.gpus, chosen.days)
    table = Table("figure", "measured", "bar")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)
    return 0


def _statement() -> tuple[str, str, str]:
    draw = Random(1)
    machines, holdings, days = [], [], 30
    for number in range(1000):
        devices = tuple(f"{number}-{at}" for at in range(8))
        name = f"n{number}"
        machines.append(
            Machine(name, 0, None, "p5.48xlarge", model="H100-SXM5-80GB", devices=devices, cpu_milli=192_000)
        )
        at = 0
        for pod in range(10):
            start = at + draw.randint(0, 10 * HOUR_MS)
            at = min(days * DAY_MS, start + draw.randint(20 * HOUR_MS, 80 * HOUR_MS))
            gpus = draw.choice((1, 2, 4, 8))
            cuts = [start, *range((start // DAY_MS + 1) * DAY_MS, at, DAY_MS), at]
            uses = tuple(
                Use(begin, end, draw.randint(0, PPM), draw.randint(0, PPM // 2)) for begin, end in pairwise(cuts)
            )
            holder = Holder(f"p{number}-{pod}", "ns", team=f"t{number % _TEAMS}")
            shares = tuple(map(DeviceShare, devices[:gpus]))
            holdings.append(Holding(holder, name, start, start + 600_000, at, shares, 8000 * gpus, 65_536, uses))
    records = Records(tuple(machines), tuple(holdings), (WantedRequest(gpus=1, cpu_milli=8000), WantedRequest(gpus=4)))
    curves = {one.name: constant(Decimal("55.04")) for one in machines}
    period = Period(TimeWindow(0, days * DAY_MS), tuple(range(0, days * DAY_MS, DAY_MS)))
    took = min(_timed(lambda: statement(records, curves, period, dimension("team"))) for _ in range(3))
    return "30 days, 10,000 pods, 1,000 nodes, by team and day", f"{took:.2f} s", "1 s"


def _history(folder: Path, gpus: int, days: int) -> list[tuple[str, str, str]]:
    history = open_history(folder)
    began, memory = process_time(), _resident_mb()
    _ingest_day(history, gpus)
    spent, grown = process_time() - began, _resident_mb() - memory
    for day in range(1, days):
        _copy_day(history, day, days)
    _add_pods(history, gpus, days)
    # The copied days are compacted, too.
    history.tables.put("meta", [StoredRow("compacted hour", _START + days * DAY_MS, 1 << 62, "", b"")])
    history.close()
    history = open_history(folder)
    end = _START + days * DAY_MS
    size = history.tables.size_bytes() / 1e9
    questions: dict[str, Callable[[], object]] = {
        "6 hours, raw": lambda: history.samples.series("util", end - 6 * HOUR_MS, end),
        "7 days, 5 minutes": lambda: history.samples.series("util", end - 7 * DAY_MS, end),
        "30 days, hours": lambda: history.samples.series("util", end - 30 * DAY_MS, end),
        "7 days by team and hour": lambda: _by_team(history, end - 7 * DAY_MS, end),
        "holders and waits of a day": lambda: history.records(end - DAY_MS, end),
    }
    rows = [
        (f"size: {gpus:,} GPUs, 8 metrics at 15 s, 10,000 pods a day, {days} days", f"{size:.2f} GB", "2 GB"),
        ("ingestion and compaction of a day, of a core", f"{spent / 86_400:.2%}", "5 %"),
        ("memory added by it", f"{grown:.0f} MB", "150 MB"),
    ]
    for name, ask in questions.items():
        rows.append((f"query: {name}", f"{min(_timed(ask) for _ in range(3)) * 1000:.0f} ms", "300 ms"))
    history.close()
    return rows


def _ingest_day(history: UsageHistory, gpus: int) -> None:
    """Values wander as on machines at work: utilisation, activities, memory, power, temperature; hardly an Xid."""
    draw = np.random.default_rng(1)
    names = [f"GPU-{number:08x}-0000-4000-8000-{number * 7919:012x}" for number in range(gpus)]
    _add_day_of_pods(history, names, 0)
    util = draw.integers(0, 100, gpus).astype(float)
    memory = draw.integers(10_000, 80_000, gpus).astype(float)
    for at in range(0, DAY_MS, _INTERVAL_MS):
        util = np.clip(util + draw.normal(0, 3, gpus), 0, 100)
        memory = np.clip(memory + draw.integers(-1, 2, gpus) * 64, 0, 81_000)
        noise = draw.normal(0, 0.02, (3, gpus))
        table = np.stack(
            [
                util.round(),
                np.clip(util / 125 + noise[0], 0, 1),
                np.clip(util / 250 + noise[1], 0, 1),
                np.clip(util / 200 + noise[2], 0, 1),
                memory,
                100 + util * 5 + draw.normal(0, 5, gpus),
                30 + util * 0.4,
                np.zeros(gpus),
            ],
            axis=1,
        )
        rows = table.tolist()
        history.samples.add(_START + at, [DeviceSample(name, row) for name, row in zip(names, rows, strict=True)])
        if at % 600_000 == 0:
            history.samples.compact(_START + at)
    history.samples.compact(_START + DAY_MS)


def _copy_day(history: UsageHistory, day: int, days: int) -> None:
    tables: list[StoredTable] = ["five", "hour", "use", *(["raw"] if day >= days - 2 else [])]  # type: ignore[list-item]
    shift = day * DAY_MS
    for table in tables:
        rows = history.tables.overlapping(table, _START, _START + DAY_MS)
        history.tables.put(
            table,
            [
                StoredRow(f"{row.key} {day}", row.start_ms + shift, (row.end_ms or 0) + shift, row.tenant, row.data)
                for row in list(rows)
            ],
        )


def _add_pods(history: UsageHistory, gpus: int, days: int) -> None:
    names = [f"GPU-{number:08x}-0000-4000-8000-{number * 7919:012x}" for number in range(gpus)]
    for day in range(1, days):
        _add_day_of_pods(history, names, day)


def _add_day_of_pods(history: UsageHistory, names: list[str], day: int) -> None:
    draw = Random(day)
    start = _START + day * DAY_MS
    holdings, waits = {}, {}
    for number in range(_PODS_A_DAY):
        begin = start + draw.randint(0, DAY_MS - HOUR_MS)
        end = begin + draw.randint(600_000, 4 * HOUR_MS)
        team = f"team-{number % _TEAMS}"
        labels = (("app", "train"), ("team", team))
        holder = Holder(f"job-{day}-{number}-x7k2p", team, f"job-{day}-{number}", "", "queue", team, labels)
        uid = f"{draw.getrandbits(128):032x}"
        device = draw.randrange(len(names))
        shares = (DeviceShare(names[device]),)
        holdings[uid] = Holding(holder, f"node-{device // 8}", begin, begin + 30_000, end, shares, 8000, 65_536)
        waits[uid] = Wait(holder, begin - 60_000, begin, 1, 0, 8000, 65_536, "Unschedulable")
    machines = {
        f"node-{number}": Machine(
            f"node-{number}", _START, None, "p5.48xlarge", devices=tuple(names[8 * number : 8 * number + 8])
        )
        for number in range(-(-len(names) // 8))
    }
    history.ledger.write(LedgerChanges(start, machines if not day else {}, holdings, waits))
    history.ledger.write(LedgerChanges(start + DAY_MS))


def _by_team(history: UsageHistory, start_ms: int, end_ms: int) -> object:
    return history.samples.team_hours(start_ms, end_ms)


def _timed(ask: Callable[[], object]) -> float:
    """Processor time, because others may use the machine; nothing here waits."""
    began = process_time()
    ask()
    return process_time() - began


def _resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())

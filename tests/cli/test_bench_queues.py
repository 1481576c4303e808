"""`shoal bench queues` shows each figure beside its bar and Kueue's; measuring itself is for `make bench`."""

from __future__ import annotations

import io

from rich.console import Console

from shoal.cli.bench import row_table
from shoal.sim.queuebench import BenchFigure


def shown(*rows: BenchFigure) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=100).print(row_table(rows))
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()[1:]]


def test_every_figure_stands_beside_its_bar_and_kueues() -> None:
    assert shown(
        BenchFigure("processor time", 3.21, " s", most=10, kueue=351.1),
        BenchFigure("use", 43.0, " %", least=50, kueue=55.9),
        BenchFigure("cycles", 1_514),
    ) == ["processor time 3.21 s <= 10 s 351 s met", "use 43.00 % >= 50 % 55.90 % missed", "cycles 1,514"]

"""`shoal bench engine` shows each figure beside its bar; measuring itself is for `make bench`."""

from __future__ import annotations

import io

from rich.console import Console

from shoal.cli.bench import figure_table

GOOD = {
    "placements_per_s": 41_000.0,
    "vs_rescan_5k": 9.5,
    "vs_rescan_50k": 80.0,
    "growth_50k_over_5k": 1.2,
    "rss_mb": 300.0,
    "mixed_placements_per_s": 14_000.0,
    "gang_1000_s": 0.04,
    "gang_1000_exact_s": 0.05,
    "preempt_s": 0.7,
    "why_not_ms": 6.0,
}


def shown(**changed: float) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=100).print(figure_table(GOOD | changed))
    return stream.getvalue().splitlines()[1:]


def test_every_figure_stands_beside_its_bar() -> None:
    lines = shown()
    assert len(lines) == 10
    assert all(line.rstrip().endswith("met") for line in lines)
    assert "41,000" in lines[0]
    assert ">= 20,000" in lines[0]


def test_a_missed_bar_says_so() -> None:
    assert shown(placements_per_s=19_999)[0].rstrip().endswith("missed")
    assert shown(rss_mb=501)[4].rstrip().endswith("missed")
    assert shown(gang_1000_s=0.11)[6].rstrip().endswith("missed")

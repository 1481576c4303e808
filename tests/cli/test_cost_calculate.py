"""`shoal cost calculate`: the published figures from their inputs, and every way to be wrong."""

from __future__ import annotations

import dataclasses
import json

import pytest

from shoal.cli.cost_calculate import _NAMES, CalculatorInputs
from shoal.cli.main import main
from shoal.cost.calculators import CALCULATORS

YEAR = "in 8760 hours"


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")


@pytest.mark.parametrize(
    ("line", "results"),
    [
        ("idle --memory-gb 80 --used-gb 30 --per-hour 40", {"idle per hour": "25.00", "idle per day": "600.00"}),
        (
            "idle --memory-gb 80 --used-gb 30 --per-hour 40 --utilisation 100%",
            {"idle by utilisation per hour": "0.00", "idle by both per hour": "0.00"},
        ),
        (
            "mig --services 50 --slices 7 --per-hour 40",
            {
                "GPUs": 8,
                "before per hour": "2000.00",
                "after per hour": "320.00",
                "saved per hour": "1680.00",
                "saved per month of 730 hours": "1226400.00",
            },
        ),
        (
            "slice --gpu H100-SXM5-80GB --used-gb 2",
            {"wasted memory %": "97.50", "MIG profile": "1g.10gb", "per GPU": 7},
        ),
        ("slice --gpu H100-SXM5-80GB --used-gb 25", {"MIG profile": "3g.40gb"}),
        ("slice --gpu L4 --used-gb 5 --utilisation 29", {"below 30 % utilisation": "yes: use MIG or time-slicing"}),
        (
            "spot --gpu-hours 1000 --on-demand 40 --spot 8",
            {"before": "40000.00", "after": "8000.00", "saved": "32000.00", "saved %": "80.00"},
        ),
        (
            "consolidation --gpus 8 --fewer 4 --hours-per-day 16 --per-hour 40",
            {"saved off peak in 30 days": "76800.00"},
        ),
        (
            "consolidation --gpus 8 --fewer 4 --hours-per-day 15 --per-hour 40",
            {"saved off peak in 30 days": "72000.00"},
        ),
        (
            "reservation --nodes 10 --on-demand 98.32 --reserved 65.93",
            {f"before {YEAR}": "8612832.00", f"after {YEAR}": "5775468.00", f"saved {YEAR}": "2837364.00"},
        ),
        ("reservation --nodes 10 --on-demand 98.32 --reserved 45.66", {"saved %": "53.56"}),
        (
            "chargeback --per-hour 40 --held research=12000@65,production=8000@85,experimentation=5000@45%",
            {
                "research": "312000.00",
                "production": "272000.00",
                "experimentation": "90000.00",
                "not charged": "326000.00",
            },
        ),
        ("chargeback --per-hour 40 --held research=12000@65 --charge request", {"research": "480000.00"}),
        (
            "targets --fleet-utilisation 40 --pod-memory 85 --research-wait-p95 2.5 --production-wait-p95 0.1",
            {
                "fleet-utilisation": "missed, wanted at least 65 % and at most 85 %: GPUs are held without work or are "
                "not requested: look at idle holders and at the queues",
                "pod-memory": "kept",
                "research-wait-p95": "missed, wanted at most 2 hours: quotas are too small or GPUs are fragmented",
                "production-wait-p95": "kept",
            },
        ),
        (
            "models --invested 120000 --gpus 4 --models 28",
            {"before per model": "30000.00", "after per model": "4285.71", "before / after times": "7.00"},
        ),
        ("compare --before 2000 --after 450", {"before / after times": "4.44", "saved %": "77.50"}),
        (
            "waste --gpus 50 --per-hour 40 --utilisation 20 --target 75",
            {f"spent {YEAR}": "17520000.00", f"idle {YEAR}": "14016000.00"},
        ),
        (
            "waste --gpus 50 --per-hour 5 --utilisation 20 --target 75",
            {f"idle {YEAR}": "1752000.00", f"the same work at the target {YEAR}": "584000.00"},
        ),
        ("fleet --nodes 50 --per-hour 35.6", {"fleet in 730 hours": "1299400.00"}),
        ("fleet --nodes 50 --per-hour 98.32 --gpus-per-node 8", {"per GPU per hour": "12.29"}),
        ("commitment --load 4x16,10x8 --committed 6 --on-demand 10", {"committed nodes": 4, "after": "1056.00"}),
        # In a moment, not in one step for each node.
        ("commitment --load 999999x100000 --committed 6 --on-demand 10", {"committed nodes": 999_999}),
    ],
)
def test_a_published_figure_follows_from_its_inputs(
    line: str, results: dict[str, str | int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", "calculate", *line.split(), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = {f"{one['name']} {one['unit']}".strip(): one["value"] for one in document["results"]}
    assert {name: found.get(name) for name in results} == results
    assert main(["cost", "calculate", *line.split()]) == 0
    first = next(iter(results.values()))
    shown = first if isinstance(first, int) or not first[0].isdigit() or "g" in first else f"{float(first):,.2f}"
    assert str(shown) in capsys.readouterr().out


def test_nothing_before_has_no_percentage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "calculate", "compare", "--before", "0", "--after", "5"]) == 0
    assert "%" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mig --services 5", "mig: needs --slices, --per-hour; write --slices COUNT --per-hour NUMBER"),
        ("spot --slices 3", "--slices is no input of spot; its inputs are --gpu-hours, --on-demand, --spot"),
        ("spt", 'calculator "spt" not found; did you mean spot?'),
        ("--spot 8", "needs the name of a calculator"),
        ("idle --memory-gb 80 --used-gb 90 --per-hour 40", "--used-gb: is more than --memory-gb"),
        ("idle --memory-gb 0 --used-gb 0 --per-hour 40", "--memory-gb: must be more than 0"),
        ("idle --memory-gb 80 --used-gb 8 --per-hour 1e3", 'per-hour: "1e3" is not an amount'),
        ("mig --services 5 --slices 0 --per-hour 1", "--slices:"),
        ("slice --gpu H900 --used-gb 2", 'no GPU "H900" is known'),
        ("slice --gpu L4 --used-gb 25", "L4 has 24 GB"),
        ("chargeback --per-hour 40 --held research=12000", "write TEAM=GPUHOURS@PERCENT"),
        ("chargeback --per-hour 40 --held a=1@65 --charge quota", "write request or usage"),
        ("commitment --load 4 --committed 6 --on-demand 10", "write NODESxHOURS, as in 4x16,10x8"),
        ("commitment --load 4x999999 --committed 6 --on-demand 10", "has more than 100000 hours"),
        ("consolidation --gpus 8 --fewer 9 --hours-per-day 16 --per-hour 40", "--fewer: is more than --gpus"),
        ("waste --gpus 50 --per-hour 5 --utilisation 120 --target 75", "is more than 100 percent"),
        ("targets", "write one or more of --fleet-utilisation"),
    ],
)
def test_wrong_input_is_named_with_what_to_write(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "calculate", *line.split()]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert not printed.out


def test_the_command_has_the_inputs_of_all_calculators(capsys: pytest.CaptureFixture[str]) -> None:
    inputs = {each.name for one in CALCULATORS for each in one.inputs}
    assert inputs == {one.name.replace("_", "-") for one in dataclasses.fields(CalculatorInputs)}
    assert list(_NAMES) == [one.name for one in CALCULATORS]
    assert main(["cost", "calculate"]) == 0
    assert "--services --slices --per-hour [--hours]" in capsys.readouterr().out
    assert main(["cost", "calculate", "-o", "json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == list(_NAMES)

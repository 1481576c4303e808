"""`shoal scale forecast` predicts from a history, shows the error, and refuses to predict from too little."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.manifests import as_file, node, thing
from shoal.autoscale.capacity_buffers.forecast_text import forecast_text
from shoal.autoscale.demand.forecast import DemandForecast, ForecastError
from shoal.cli.main import main
from shoal.cost.records import FULL_SHARE, DeviceShare, Holder, Holding
from shoal.store.history.file_tables import open_for_writing
from shoal.store.history.ledger import Ledger, LedgerChanges

HOUR_MS = 3_600_000
MONDAY_MS = 1795392000000
DAY, WEEK = 24, 168


def recorded(folder: Path, hours: int) -> str:
    """Each day from 8 to 18 h UTC a pod with four GPUs."""
    tables = open_for_writing(folder)
    ledger = Ledger(tables)
    ledger.write(LedgerChanges(MONDAY_MS))
    devices = tuple(DeviceShare(f"g{number}", FULL_SHARE) for number in range(4))
    days = range(-(-hours // DAY))
    spans = [(MONDAY_MS + (day * DAY + 8) * HOUR_MS, MONDAY_MS + (day * DAY + 18) * HOUR_MS) for day in days]
    held = {f"p{start}": Holding(Holder("p", "team"), "m", start, start, end, devices) for start, end in spans}
    ledger.write(LedgerChanges(MONDAY_MS + hours * HOUR_MS, {}, held))
    tables.close()
    return str(folder)


def test_the_hours_of_the_week_and_the_error_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "forecast", "team", "--history", recorded(tmp_path, 3 * WEEK)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "GPUs of namespace team, by hour of the week (UTC), from 3 weeks:"
    assert lines[2].split() == ["Mon", *"000044444000"]
    assert lines[-1] == (
        "Error: 0.00 GPUs as a mean of 336 hours, each predicted from the weeks before it; "
        "demand was higher in 0.0% of them"
    )


def test_a_document_has_each_hour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--history", recorded(tmp_path, 2 * WEEK), "--time-zone", "Asia/Tokyo", "-o", "json"]
    assert main(["scale", "forecast", "team", *given]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["weeks"], len(found["gpus"]), found["gpus"][17], found["gpus"][16]) == (2, WEEK, 4.0, 0.0)
    assert found["error"]["shortShare"] == 0


@pytest.mark.parametrize(
    ("hours", "arguments", "words"),
    [
        (13 * DAY, (), "13.0 days were recorded; a forecast needs 14"),
        (2 * WEEK, ("--quantile", "90"), "90 is not a part"),
        (2 * WEEK, ("--time-zone", "Mars"), "Mars"),
    ],
)
def test_what_cannot_be_predicted_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hours: int, arguments: tuple[str, ...], words: str
) -> None:
    assert main(["scale", "forecast", "team", "--history", recorded(tmp_path, hours), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_pools_show_the_forecast_of_a_buffer_and_its_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = DemandForecast((3.0,) * WEEK, 4, ForecastError(WEEK, 0.75, 0.25, 0.5, 0.25))
    text = forecast_text(found, MONDAY_MS, "UTC")
    buffers = [thing("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", f"team/{name}", spec={}) for name in "abc"]
    buffers[0]["metadata"]["annotations"] = {"shoal.dev/buffer-forecast": text}
    buffers[1]["metadata"]["annotations"] = {"shoal.dev/buffer-forecast": "soon"}
    assert main(["scale", "pools", "-f", as_file(tmp_path, node("n", 8), *buffers)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("capacitybuffer")]
    assert lines[0] == (
        "capacitybuffer team/a: 3 GPUs are predicted for this hour from 4 weeks; mean error 0.75 GPUs, "
        "demand was higher in 25% of hours"
    )
    assert lines[1].startswith("capacitybuffer team/b: the forecast cannot be read")
    assert len(lines) == 2

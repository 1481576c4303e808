"""`shoal scale forecast` predicts from a history, shows the error, and refuses to predict from too little."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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

"""`shoal cost export` and `-o parquet`: files that other programs read, the same each time, and complete by day."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.main import main
from shoal.cost.records import BrokenDevice, DeviceShare, Holder, Holding, Machine, MachineCondition, Span, Wait
from shoal.store.history.file_targets import file_target
from shoal.store.history.history import UsageHistory, open_history
from shoal.store.history.ledger import Ledger, LedgerChanges
from shoal.store.history.ledger_files import export_days
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.sample_blocks import METRICS
from shoal.store.history.samples import DAY_MS, DeviceSample
from shoal.store.history.tables import StoredRow, Table
from shoal.units.calendar_windows import HOUR_MS, TimeWindow
from shoal.units.errors import UserError

START = 1_793_232_000_000
"""2026-10-29T00:00:00Z."""
DAYS = ("2026-10-29", "2026-10-30")
TABLES = ("gaps", "holdings", "machines", "waits")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    devices = ("g0", "g1")
    machine = Machine(
        "m",
        START - HOUR_MS,
        None,
        "dgx-h100",
        model="H100-SXM5-80GB",
        devices=devices,
        conditions=(MachineCondition("booting", START, START + HOUR_MS),),
        broken=(BrokenDevice("g1", START + 40 * HOUR_MS, None),),
    )
    holder = Holder("train-0", "lab", job="train", team="red", labels=(("app", "=x"),))
    held = Holding(holder, "m", START + 22 * HOUR_MS, START + 22 * HOUR_MS, START + 26 * HOUR_MS, (DeviceShare("g0"),))
    half = (DeviceShare("g1", DeviceShare("g1").share // 2, "g1::0"),)
    open_ = Holding(Holder("note", "lab"), "m", START + 30 * HOUR_MS, None, None, half)
    wait = Wait(holder, START + 21 * HOUR_MS, START + 22 * HOUR_MS, 1, reason="Unschedulable")
    history = open_history(tmp_path / "history")
    history.ledger.write(LedgerChanges(START, {"m": machine}))
    gap = Span(START + 23 * HOUR_MS, START + 25 * HOUR_MS)
    rows = {"u1": held, "u2": open_}
    history.ledger.write(LedgerChanges(START + 44 * HOUR_MS, {}, rows, {"u1": wait}, gap))
    for at in range(22 * HOUR_MS, 24 * HOUR_MS, 60_000):
        history.samples.add(START + at, [DeviceSample("g0", [100.0 if at < 23 * HOUR_MS else 0.0, *[None] * 7])])
    history.samples.compact(START + 44 * HOUR_MS)
    history.close()
    assert len(METRICS) == 8
    (tmp_path / "prices.yaml").write_text("machines:\n- {instanceType: dgx-h100, perHour: '40.00'}\n")
    return tmp_path


def _export(folder: Path, target: str, *words: str) -> int:
    return main(
        ["cost", "export", "--parquet", target, "--history", str(folder / "history"), "--window", "40d", *words]
    )


def _read(folder: Path, table: str, day: str) -> list[dict[str, Any]]:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, Any]] = (
        parquet.ParquetFile(folder / table / f"day={day}" / f"{table}.parquet").read().to_pylist()
    )
    return rows


def test_every_day_has_its_part_of_the_ledger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    assert _export(folder, str(folder / "out")) == 0
    assert "8 files with 8 rows of 2 days, 2026-10-29 to 2026-10-30" in capsys.readouterr().out
    first, second = (_read(folder / "out", "holdings", day) for day in DAYS)
    assert [row["gpu_seconds"] for row in first] == [2 * 3600]
    assert [(row["uid"], row["gpus"], row["gpu_seconds"], row["is_open"]) for row in second] == [
        ("u1", 1.0, 2 * 3600, False),
        ("u2", 0.5, 14 * 1800, True),
    ]
    (row,) = first
    assert (row["measured_seconds"], row["active_seconds"]) == (7200, 3600)
    assert (row["team"], row["labels"], row["devices"]) == (
        "red",
        [("app", "=x")],
        [{"device": "g0", "part": "", "share": 1.0}],
    )
    assert row["start"].isoformat() == "2026-10-29T22:00:00+00:00"
    assert row["end"].isoformat() == "2026-10-30T00:00:00+00:00"
    assert second[1]["measured_seconds"] == 0
    assert second[1]["running"] is None
    machines = [_read(folder / "out", "machines", day)[0] for day in DAYS]
    assert [one["booting_seconds"] for one in machines] == [3600, 0]
    assert [one["broken_gpu_seconds"] for one in machines] == [0, 4 * 3600]
    assert [one["end"].isoformat()[11:16] for one in machines] == ["00:00", "20:00"]
    gaps = [[(one["end"] - one["start"]).total_seconds() for one in _read(folder / "out", "gaps", day)] for day in DAYS]
    assert gaps == [[3600], [3600]]
    assert [one["reason"] for one in _read(folder / "out", "waits", DAYS[0])] == ["Unschedulable"]


def test_writing_again_gives_the_same_files(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    assert _export(folder, str(folder / "out")) == 0
    before = {path: path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file()}
    assert {path.name for path in before} == {f"{table}.parquet" for table in TABLES}
    assert _export(folder, str(folder / "out"), "--window", "2026-10-29T12:00:00Z,2026-10-29T13:00:00Z") == 0
    assert _export(folder, str(folder / "out")) == 0
    assert {path: path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file()} == before


def test_an_export_after_a_deletion_keeps_the_files_of_days_that_were_complete(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    assert _export(folder, str(folder / "out")) == 0
    before = (folder / "out/holdings/day=2026-10-29/holdings.parquet").read_bytes()
    history = open_history(folder / "history")
    history.ledger.delete_before(START + 27 * HOUR_MS)
    history.ledger.write(LedgerChanges(START + 50 * HOUR_MS))
    history.close()
    assert _export(folder, str(folder / "out")) == 0
    assert (folder / "out/holdings/day=2026-10-29/holdings.parquet").read_bytes() == before
    assert [row["uid"] for row in _read(folder / "out", "holdings", DAYS[1])] == ["u1", "u2"]
    assert [row["uid"] for row in _read(folder / "out", "holdings", "2026-10-31")] == ["u2"]


class RecordedMeanwhile(MemoryTables):
    """A pod is recorded whenever nodes are read."""

    def overlapping(self, table: Table, start_ms: int, end_ms: int) -> Iterator[StoredRow]:
        if table == "machine":
            self.record(f"u{len(self.of_tenant('holding', 'lab'))}")
        return super().overlapping(table, start_ms, end_ms)

    def record(self, uid: str) -> None:
        held = Holding(Holder(f"of-{uid}", "lab"), "m", START, START, None, (DeviceShare("g0"),))
        Ledger(self).write(LedgerChanges(START + HOUR_MS, holdings={uid: held}))


def test_an_export_while_pods_are_recorded_has_each_pod_under_its_own_uid() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    tables = RecordedMeanwhile()
    Ledger(tables).write(LedgerChanges(START))
    tables.record("u0")
    found: dict[str, bytes] = {}
    export_days(UsageHistory(tables), TimeWindow(START, START + HOUR_MS), found.__setitem__)
    rows = parquet.read_table(io.BytesIO(found["holdings/day=2026-10-29/holdings.parquet"]), partitioning=None)
    assert [(row["uid"], row["pod"]) for row in rows.to_pylist()] == [("u0", "of-u0")]


def test_a_window_before_the_history_has_no_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    assert _export(folder, str(folder / "out"), "--window", "2026-09") == 0
    assert "no day of the window was recorded" in capsys.readouterr().out
    assert not (folder / "out").exists()


def test_the_statement_has_the_rows_of_the_days_and_adds_up(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    sources = ["--history", str(folder / "history"), "--prices", str(folder / "prices.yaml")]
    words = ["--window", "2026-10-29,2026-10-31", "--time-zone", "Europe/Berlin", "-o", "parquet"]
    assert main(["cost", *sources, *words]) == 0
    rows = parquet.read_table(io.BytesIO(capsysbinary.readouterr().out)).to_pylist()
    assert sum(row["amount"] for row in rows) == Decimal(40) * 48
    assert {row["day"].isoformat() for row in rows} == set(DAYS)
    assert {row["start"].isoformat() for row in rows} == {"2026-10-28T23:00:00+00:00", "2026-10-29T23:00:00+00:00"}
    assert {row["currency"] for row in rows} == {"USD"}


@pytest.mark.parametrize("target", ["gs://bucket/x", "s3://", "s3://Bucket", "https://host/x", "s3://a"])
def test_a_target_that_is_none_is_named(target: str) -> None:
    with pytest.raises(UserError, match="--parquet: is no folder and no bucket"):
        file_target(target)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match=r"a\.parquet: cannot be written"):
        file_target(str(tmp_path / "out"))("a.parquet", b"")


def test_a_file_in_the_way_is_named_and_no_part_is_left(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        file_target(str(tmp_path / "out"))("day=1/a.parquet", b"x")
    (tmp_path / "day=1" / "a.parquet").mkdir(parents=True)
    with pytest.raises(UserError, match="cannot be written"):
        file_target(str(tmp_path))("day=1/a.parquet", b"x")
    assert [one.name for one in (tmp_path / "day=1").iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("words", [["export", "--parquet", "out"], ["-o", "parquet"]])
def test_without_pyarrow_its_extra_is_named(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    sources = ["--history", str(folder / "history"), "--prices", "prices.yaml"]
    assert main(["cost", *words, *(sources if words[0] == "-o" else sources[:2])]) == 2
    assert "pip install 'shoal[parquet]'" in capsys.readouterr().err
    assert not (folder / "out").exists()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    boto3 = pytest.importorskip("boto3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
        ("AWS_ACCESS_KEY_ID", "none"),
        ("AWS_SECRET_ACCESS_KEY", "none"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="ledgers")
    yield client
    server.stop()


@pytest.mark.external
def test_a_bucket_has_the_same_files_as_a_folder(folder: Path, bucket: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert _export(folder, str(folder / "out")) == 0
    for _ in range(2):
        assert _export(folder, "s3://ledgers/shoal/") == 0
    found = {
        one["Key"]: bucket.get_object(Bucket="ledgers", Key=one["Key"])["Body"].read()
        for one in bucket.list_objects_v2(Bucket="ledgers")["Contents"]
    }
    files = {path.relative_to(folder / "out"): path.read_bytes() for path in (folder / "out").rglob("*.parquet")}
    assert found == {f"shoal/{path}": data for path, data in files.items()}
    assert len(found) == 8
    assert _export(folder, "s3://missing") == 2
    assert "s3://missing/holdings/day=2026-10-29/holdings.parquet: cannot be written" in capsys.readouterr().err


def test_a_day_is_a_day_of_utc() -> None:
    assert START % DAY_MS == 0

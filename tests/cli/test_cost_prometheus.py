"""`shoal cost` with samples of a Prometheus server: the same sums, and what it says when the server is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from build.fake_prometheus import FakePrometheus, serving
from shoal.cli.main import main
from shoal.cost.records import DeviceShare, Holder, Holding, Machine
from shoal.prometheus.promql.series import LabelledValue, SeriesStore
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges
from shoal.units.calendar_windows import HOUR_MS

START = 1_793_232_000_000
UTIL = "DCGM_FI_DEV_GPU_UTIL"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    history = open_history(tmp_path / "history")
    machine = Machine("m", START, None, "dgx-h100", model="H100-SXM5-80GB", devices=("GPU-a", "GPU-b"))
    held = Holding(Holder("p", "lab", job="j", team="red"), "m", START, START, START + HOUR_MS, (DeviceShare("GPU-a"),))
    history.ledger.write(LedgerChanges(START, {"m": machine}))
    history.ledger.write(LedgerChanges(START + 2 * HOUR_MS, {}, {"p": held}))
    history.close()
    (tmp_path / "prices.yaml").write_text("machines:\n- {instanceType: dgx-h100, perHour: '40.00'}\n")
    return tmp_path


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    store = SeriesStore({UTIL: 9 * HOUR_MS, **dict.fromkeys(("DCGM_FI_PROF_SM_ACTIVE",), 0)})
    labels = store.label_sets.of({"UUID": "GPU-a", "namespace": "lab", "pod": "p"})
    for at in range(START, START + HOUR_MS, 60_000):
        value = 100.0 if at < START + HOUR_MS // 4 else 0.0
        store.scrape("exporter", at, [LabelledValue(UTIL, labels, value)])
    made = FakePrometheus(store)
    with serving(made):
        yield made


def _words(folder: Path, url: str) -> list[str]:
    sources = ["--history", str(folder / "history"), "--prices", str(folder / "prices.yaml")]
    return ["cost", "--window", "2h", *sources, "--prometheus", url, "-o", "json"]


def test_use_is_that_of_the_server(folder: Path, server: FakePrometheus, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(_words(folder, server.url)) == 0
    out, _ = capsys.readouterr()
    found = json.loads(out)
    (red,) = found["groups"]
    active, idle = (Decimal(red["amounts"][name]) for name in ("allocated-active", "allocated-idle"))
    assert active * 3 - idle in (0, Decimal("0.01"), Decimal("-0.01"))
    assert set(red["amounts"]) == {"allocated-active", "allocated-idle"}
    assert Decimal(found["total"]) == 80


def test_without_the_server_time_is_not_measured_and_the_reason_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_words(folder, "http://127.0.0.1:1")) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    (red,) = found["groups"]
    assert set(red["amounts"]) == {"allocated-unmeasured"}
    assert Decimal(found["total"]) == 80
    assert "http://127.0.0.1:1 cannot be asked" in err
    assert any("127.0.0.1:1" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prometheus", "prom:9090"], "--prometheus: is not an HTTP address"),
        (["--prometheus-token", "token"], "--prometheus-token: is for a server"),
        (["--prometheus-match", 'job="a"'], "--prometheus-match: is for a server"),
        (["--prometheus", "http://prom", "--prometheus-token", "nothing"], "nothing: cannot be read"),
    ],
)
def test_options_that_are_wrong_are_named(
    folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["cost"], ["cost", "serve"], ["cost", "explain", "j"]):
        assert main([*command, "--history", str(folder / "history"), *words]) == 2
        assert said in capsys.readouterr().err


def test_a_run_without_a_history_has_no_use_for_samples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--prometheus", "http://127.0.0.1:1"]) == 2
    assert "--prometheus: needs a history" in capsys.readouterr().err

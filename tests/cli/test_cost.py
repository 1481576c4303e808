"""`shoal cost` on a recorded history: the sums, every format, and every way to be wrong."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import urllib.request
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from build.manifests import as_file, node, pod
from shoal.cli.main import main
from shoal.client.clock import WallClock
from shoal.cost.records import BrokenDevice, DeviceShare, Holder, Holding, Machine, MachineCondition, Wait
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.sample_blocks import METRICS
from shoal.store.history.samples import DeviceSample
from shoal.store.history.team_budgets import BudgetedNamespace
from shoal.units.calendar_windows import HOUR_MS

START = 1_793_232_000_000
"""2026-10-29T00:00:00Z."""
DAY = ("--window", "2026-10-29T00:00:00Z,2026-10-30T00:00:00Z")


class Costs:
    """A day of one p5.48xlarge and one dgx-h100, with three jobs."""

    def __init__(self, history: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = history
        self._capsys = capsys
        self.err = ""
        self.prices = folder / "prices.yaml"
        self.prices.write_text("machines:\n- {instanceType: dgx-h100, perHour: '40.00'}\n")

    def run(self, *arguments: str, code: int = 0, prices: bool = True) -> str:
        group = [one for one in arguments[:1] if one in ("explain", "advise")]
        rest = arguments[len(group) :]
        priced = ("--prices", str(self.prices)) if prices else ()
        found = main(["cost", *group, *DAY, *rest, "--history", str(self.folder), *priced])
        out, self.err = self._capsys.readouterr()
        assert found == code, self.err
        return out

    def read(self) -> tuple[str, str]:
        return self._capsys.readouterr()

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "-o", "json"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    devices = [tuple(f"{node}-{at}" for at in range(8)) for node in ("p", "d")]
    boot = (MachineCondition("booting", START, START + HOUR_MS),)
    model = "H100-SXM5-80GB"
    machines = {
        "p": Machine("p", START, None, "p5.48xlarge", model=model, devices=devices[0], conditions=boot),
        "d": Machine(
            "d",
            START,
            None,
            "dgx-h100",
            model=model,
            devices=devices[1],
            conditions=boot,
            broken=(BrokenDevice("d-7", START, None),),
        ),
    }
    holdings = {
        "u1": _held("train-0", "train", "red", (1, 13), devices[0], gang="g", queue="q"),
        "u2": _held("train-1", "train", "red", (2, 13), devices[1][:2], gang="g", queue="q"),
        "u3": _held("note-0", "=note", "blue", (3, 23), devices[1][2:3]),
    }
    waits = {"u2": Wait(holdings["u2"].holder, START, START + 2 * HOUR_MS, 2, reason="Unschedulable")}
    history = open_history(folder)
    history.ledger.write(LedgerChanges(START, machines))
    for at in range(0, 24 * HOUR_MS, 5 * 60_000):
        values: list[float | None] = [0.0, None, None, None, 2048.0] + [None] * (len(METRICS) - 5)
        history.samples.add(START + at, [DeviceSample("d-2", values)])
    history.ledger.write(LedgerChanges(START + 24 * HOUR_MS, {}, holdings, waits))
    history.samples.compact(START + 24 * HOUR_MS)
    history.close()
    return folder


def _held(
    pod: str, job: str, team: str, hours: tuple[int, int], devices: tuple[str, ...], gang: str = "", queue: str = ""
) -> Holding:
    start, end = (START + hour * HOUR_MS for hour in hours)
    holder = Holder(pod, "lab", job=job, team=team, labels=(("app", "x"),), gang=gang, queue=queue)
    return Holding(holder, devices[0][0], start, start, end, tuple(DeviceShare(one) for one in devices))


@pytest.fixture
def costs(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Costs:
    monkeypatch.setenv("COLUMNS", "120")
    return Costs(recorded, tmp_path, capsys)


TOTAL = Decimal("55.04") * 24 + Decimal(40) * 24


@pytest.mark.parametrize("by", ["team", "namespace", "queue", "job", "gang", "pod", "model", "node", "label:app"])
def test_the_groups_and_the_rest_add_up_to_the_price_of_all_nodes(costs: Costs, by: str) -> None:
    found = costs.json("--by", by)
    parts = [Decimal(group["total"]) for group in found["groups"]] + [Decimal(one) for one in found["others"].values()]
    assert sum(parts) == Decimal(found["total"]) == TOTAL


def test_hours_of_teams_are_those_that_they_held(costs: Costs) -> None:
    found = {group["group"]: group for group in costs.json()["groups"]}
    assert Decimal(found["red"]["gpuHours"]) == 12 * 8 + 11 * 2
    assert Decimal(found["blue"]["gpuHours"]) == 20
    assert set(found["blue"]["amounts"]) == {"allocated-idle"}
    # The whole price belongs to the GPUs, because the nodes report neither CPUs nor memory.
    assert Decimal(found["blue"]["total"]) == Decimal(40) / 8 * 20


def test_the_table_names_groups_classes_and_the_total(costs: Costs) -> None:
    out = costs.run()
    assert out.splitlines()[0].split() == ["team", "GPU", "hours", "idle", "unmeasured", "USD", "share"]
    assert "unhealthy" in out
    assert "total        2,280.96  USD" in out


def test_csv_and_focus_have_a_row_for_each_day_and_class_and_the_same_sum(costs: Costs) -> None:
    own = list(csv.DictReader(io.StringIO(costs.run("-o", "csv", "--by", "job"))))
    focus = list(csv.DictReader(io.StringIO(costs.run("-o", "focus", "--by", "job"))))
    assert sum(Decimal(row["amount"]) for row in own) == TOTAL
    assert sum(Decimal(row["BilledCost"]) for row in focus) == TOTAL
    assert {row["day"] for row in own} == {"2026-10-29"}
    assert {row["ChargePeriodStart"] for row in focus} == {"2026-10-29T00:00:00Z"}


def test_a_value_that_a_spreadsheet_would_compute_is_written_as_text(costs: Costs) -> None:
    rows = list(csv.DictReader(io.StringIO(costs.run("-o", "csv", "--by", "label:app"))))
    assert {row["group"] for row in rows} == {"", "x"}
    jobs = list(csv.DictReader(io.StringIO(costs.run("-o", "csv", "--by", "gang"))))
    assert all(not row["group"].startswith("=") for row in jobs)


def test_days_of_a_zone_divide_the_window(costs: Costs) -> None:
    rows = list(csv.DictReader(io.StringIO(costs.run("-o", "csv", "--time-zone", "Asia/Tokyo"))))
    assert {row["day"] for row in rows} == {"2026-10-29", "2026-10-30"}
    assert sum(Decimal(row["amount"]) for row in rows) == TOTAL


def test_a_node_of_an_unknown_instance_type_is_named_and_the_others_are_shown_as_a_part(costs: Costs) -> None:
    shown = costs.run(prices=False)
    assert "partial total" in shown
    assert "price missing: node d (dgx-h100, has no price): the sums are partial" in costs.err
    assert "machines: [{instanceType: dgx-h100, perHour: AMOUNT}]" in costs.err
    found = json.loads(costs.run("-o", "json", prices=False))
    (missing,) = found["missingPrices"]
    assert found["partial"]
    assert (missing["instanceType"], missing["nodes"]) == ("dgx-h100", ["d"])
    amounts = [Decimal(group["total"]) for group in found["groups"]] + [
        Decimal(one) for one in found["others"].values()
    ]
    # The other node is a p5.48xlarge at 55.04 an hour.
    assert sum(amounts) == Decimal(found["total"]) == 24 * Decimal("55.04")
    complete = costs.json()
    assert not complete["partial"]
    assert complete["missingPrices"] == []


def test_prices_are_asked_for_where_no_node_has_one(costs: Costs) -> None:
    costs.prices.write_text("currency: EUR\n")
    assert costs.run(code=2) == ""
    assert "no price is known of dgx-h100 (has no price), p5.48xlarge (has no price)" in costs.err


def test_a_wrong_price_file_is_named_with_its_field(costs: Costs) -> None:
    costs.prices.write_text("machines:\n- {instanceType: dgx-h100, perHour: forty}\n")
    costs.run(code=2)
    assert "prices.yaml: machines[0].perHour" in costs.err


def test_charges_add_up_and_what_is_left_goes_where_it_is_asked_to(costs: Costs) -> None:
    found = costs.json("--charge", "request", "--idle", "weighted")
    assert sum(Decimal(row["amount"]) for row in found["charges"]) == TOTAL
    assert {row["group"] for row in found["charges"]} == {"red", "blue"}
    shown = costs.run("--charge", "usage")
    assert "(not charged)" in shown


def test_amounts_add_up_to_an_invoice_and_the_difference_has_a_line(costs: Costs, tmp_path: Path) -> None:
    invoice = tmp_path / "invoice.csv"
    invoice.write_text("BilledCost,BillingCurrency,ChargePeriodStart\n2300.01,USD,2026-10-29T00:00:00Z\n")
    found = costs.json("--invoice", str(invoice))
    parts = [Decimal(group["total"]) for group in found["groups"]] + [Decimal(one) for one in found["others"].values()]
    assert sum(parts) == Decimal(found["total"]) == Decimal("2300.01")
    assert found["others"]["invoice-adjustment"] == "19.05"
    invoice.write_text("BilledCost,BillingCurrency,ChargePeriodStart\n1,USD,2025-10-29T00:00:00Z\n")
    costs.run("--invoice", str(invoice), code=2)
    assert "has no row in the window" in costs.err


def test_a_job_is_explained_with_its_pods_devices_and_waits(costs: Costs) -> None:
    out = costs.run("explain", "lab/train")
    assert out.startswith("lab/train: 770.48 USD, 118.0 GPU-hours in 2 pods")
    assert "8.0 GPU-hours were held until the gang was complete" in out
    assert "its pods waited 2.0 hours in all (Unschedulable)" in out
    found = costs.json("explain", "train-1")
    assert [pod["devices"] for pod in found["pods"]] == [["d-0", "d-1"]]


def test_a_job_that_was_not_recorded_is_refused_with_those_that_were(costs: Costs) -> None:
    costs.run("explain", "lab/missing", code=2)
    assert "lab/train" in costs.err


def test_an_idle_notebook_is_advised_with_its_saving(costs: Costs) -> None:
    found = costs.json("advise")["advice"]
    idle = [one for one in found if one["about"] == "job lab/=note"]
    assert {one["what"] for one in idle} >= {"stop it while it is idle"}
    assert any("1g.10gb" in one["what"] for one in idle)
    assert Decimal(idle[0]["saving"]) == Decimal(40) / 8 * 20
    assert "saves USD" in costs.run("advise")


def test_a_window_before_the_history_is_unknown_and_costs_nothing(costs: Costs) -> None:
    found = costs.json("--window", "2026-10-01")
    assert (found["total"], found["unknownHours"]) == ("0.00", "24.00")
    assert "the history begins at 2026-10-29T00:00:00Z" in costs.err


def test_budgets_of_the_month_are_compared_with_what_was_spent(costs: Costs) -> None:
    with costs.prices.open("a") as file:
        file.write("budgets:\n- {team: red, perMonth: 700}\n- {team: blue, perMonth: 100000}\n")
    arguments = ["--history", str(costs.folder), "--prices", str(costs.prices)]
    assert main(["cost", "budget", *arguments]) == 0
    out, _ = costs.read()
    assert [line.split()[-2:] for line in out.splitlines()[1:]] == [["exceeded", "no"], ["kept", "no"]]
    assert main(["cost", "budget", *arguments, "--window", "7d"]) == 2


def test_the_budgets_of_teams_are_shown_beside_those_of_the_price_file(costs: Costs, tmp_path: Path) -> None:
    folder = tmp_path / "history"
    shutil.copytree(costs.folder, folder)
    arguments = ["--history", str(folder), "--prices", str(costs.prices)]
    history = open_history(folder)
    annotations = {"shoal.dev/budget-per-month": "700", "shoal.dev/budget-enforced": "spent"}
    history.team_budgets.write([BudgetedNamespace("lab", {"shoal.dev/team": "red"}, annotations)], START)
    history.close()
    assert main(["cost", "budget", *arguments]) == 0
    (line,) = costs.read()[0].splitlines()[1:]
    assert all(word in line for word in ("team red", "exceeded", "spent"))
    with costs.prices.open("a") as file:
        file.write("budgets:\n- {team: red, perMonth: 100000}\n- {team: blue, perMonth: 100000}\n")
    assert main(["cost", "budget", *arguments]) == 0
    assert [line.split()[-2:] for line in costs.read()[0].splitlines()[1:]] == [["kept", "no"], ["kept", "no"]]


def test_a_forgotten_namespace_has_no_names_and_its_time_is_not_free(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = open_history(tmp_path)
    held = _held("secret-pod", "secret-job", "red", (0, 5), ("p-0",))
    history.ledger.write(LedgerChanges(START, {}, {"u": held}))
    history.close()
    asked = ["cost", "forget", "lab", "--history", str(tmp_path)]
    assert main(asked) == 2
    assert "--yes" in capsys.readouterr().err
    assert main([*asked, "--yes"]) == 0
    assert "1 records of the namespace lab" in capsys.readouterr().out
    assert b"secret" not in (tmp_path / "history.db").read_bytes()
    assert main([*asked, "--yes"]) == 2
    assert main(["cost", "forget", "lab", "--history", str(tmp_path / "none"), "--yes"]) == 2


def test_a_history_that_is_recorded_is_not_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = open_history(tmp_path)
    assert main(["cost", "forget", "lab", "--history", str(tmp_path), "--yes"]) != 0
    assert "another process writes the history" in capsys.readouterr().err
    writer.close()


def test_a_price_file_without_budgets_is_named(costs: Costs) -> None:
    assert main(["cost", "budget", "--history", str(costs.folder), "--prices", str(costs.prices)]) == 2
    assert "has no budgets" in costs.read()[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "colour"), "is no dimension"),
        (("--time-zone", "Mars"), "is not a time zone"),
        (("-o", "xml"), "--output"),
        (("--weights", "guess"), "--weights"),
        (("--idle", "even"), "--idle is only for --charge"),
        (("--charge", "rent"), "--charge"),
        (("--charge", "usage", "-o", "csv"), "does not go with"),
        (("--charge", "rate-card"), "rateCard"),
    ],
)
def test_a_wrong_option_is_named(costs: Costs, arguments: tuple[str, ...], message: str) -> None:
    costs.run(*arguments, code=2)
    assert message in costs.err


def test_a_folder_without_a_history_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--history", str(tmp_path / "none")]) == 2
    assert "has no history" in capsys.readouterr().err


def test_costs_are_served_to_tools_that_read_opencost(costs: Costs) -> None:
    arguments = ["cost", "serve", "--port", "0", "--history", str(costs.folder), "--prices", str(costs.prices)]
    process = subprocess.Popen([sys.executable, "-m", "shoal", *arguments], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = process.stderr.readline().split()[0].partition("?")[0]
        with urllib.request.urlopen(f"{url}?window={DAY[1]}&aggregate=team", timeout=60) as answer:  # noqa: S310 - of loopback
            (found,) = json.load(answer)["data"]
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
    totals = {one["group"]: one for one in costs.json()["groups"]}
    assert set(found) == set(totals) == {"red", "blue"}
    assert found["red"]["totalCost"] == pytest.approx(float(totals["red"]["total"]), abs=0.01)


def test_serving_costs_needs_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "serve", "--history", str(tmp_path)]) == 2
    assert "has no history" in capsys.readouterr().err
    assert main(["run", "--cost-port", "9003"]) == 2
    assert "--cost-port: needs a history; name a folder with --history" in capsys.readouterr().err


def test_a_ledger_that_is_shorter_than_the_month_of_an_enforced_budget_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prices.yaml").write_text("budgets: [{team: red, perMonth: 10, enforce: spent}]\n")
    sources = ["--history", str(tmp_path / "history"), "--prices", str(tmp_path / "prices.yaml")]
    assert main(["run", *sources, "--history-retention", "ledger=7d"]) == 2
    error = capsys.readouterr().err
    assert "--history-retention: ledger: is shorter than a month, and the budget of team red is enforced" in error
    assert "write ledger=32d or more" in error


def test_the_size_of_a_job_is_that_of_the_advice(costs: Costs) -> None:
    arguments = ("size", "--job", "lab/=note", "--history", str(costs.folder), *DAY)
    assert main([*arguments]) == 0
    out, _ = costs.read()
    assert out.splitlines()[0].split() == ["job", "lab/=note,", "on", "H100-SXM5-80GB"]
    assert main([*arguments, "-o", "json"]) == 0
    found = json.loads(costs.read()[0])
    (advised,) = (one for one in costs.json("advise")["advice"] if one["what"].startswith("give it a"))
    assert advised["what"] == f"give it a {found['migProfile']} instead of a GPU ({found['perGpu']} fit a GPU)"
    assert f"a MIG instance {found['migProfile']}" in out
    assert found["memoryGib"] == 2.0


def test_the_doctor_names_what_suffices_for_a_job_that_runs(costs: Costs, tmp_path: Path) -> None:
    note = pod("lab/note-0", 1, "d", status={"phase": "Running"})
    world = as_file(tmp_path, note, node("d", 8))
    arguments = ("doctor", "-f", world, "-o", "json")
    main([*arguments])
    assert "OversizedGpu" not in costs.read()[0]
    assert main([*arguments, "--history", str(costs.folder)]) == 1
    (cause,) = (one for one in json.loads(costs.read()[0])["causes"] if one["id"] == "OversizedGpu")
    assert (cause["subject"], cause["severity"]) == ("job lab/=note", "warning")
    main(["size", "--job", "lab/=note", "--history", str(costs.folder), *DAY, "-o", "json"])
    profile = json.loads(costs.read()[0])["migProfile"]
    assert f"a MIG instance {profile}" in cause["what"]
    assert main([*arguments, "--history", str(tmp_path / "none")]) == 2


def test_a_job_without_a_measurement_and_a_job_beside_a_model_are_wrong_input(costs: Costs) -> None:
    history = ("--history", str(costs.folder), *DAY)
    assert main(["size", "--job", "lab/not", *history]) == 2
    assert "the history has no use of job" in costs.read()[1]
    assert main(["size", "Mistral-7B", "--job", "lab/train", *history]) == 2
    assert "is given beside a model" in costs.read()[1]


def test_a_filter_leaves_the_costs_of_what_it_names(costs: Costs) -> None:
    whole = costs.json("--by", "pod")
    teams = {row["group"]: row for row in costs.json("--by", "team")["groups"]}
    found = costs.json("--by", "pod", "--filter", "team=red")
    assert found["total"] == teams["red"]["total"]
    assert not found["others"]
    groups = {row["group"]: row for row in found["groups"]}
    assert groups
    assert all(row in whole["groups"] for row in found["groups"])
    assert sum(Decimal(row["total"]) for row in groups.values()) == Decimal(found["total"])
    (name,) = list(groups)[:1]
    one = costs.json("--by", "pod", "--filter", "team=red", "--filter", f"pod={name}")
    assert [row["group"] for row in one["groups"]] == [name]
    assert costs.json("--filter", "team=nobody")["total"] == "0.00"
    assert "no filter" in _error(costs, "--filter", "red")
    assert "is no dimension of costs" in _error(costs, "--filter", "colour=red")
    assert "--filter does not go with --charge" in _error(costs, "--filter", "team=red", "--charge", "request")


def test_time_that_has_not_come_costs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = round(WallClock().seconds()) * 1000
    history = open_history(tmp_path / "history")
    history.ledger.write(LedgerChanges(now - 24 * HOUR_MS, {"n": Machine("n", now - 24 * HOUR_MS, None, "dgx-h100")}))
    history.ledger.write(LedgerChanges(now))
    history.close()
    costs = Costs(tmp_path / "history", tmp_path, capsys)
    begin = now // 1000 - 24 * 3600
    assert costs.json("--window", f"{begin},{begin + 90 * 24 * 3600}")["total"] == "960.00"
    assert "which is in the future" in _error(costs, "--window", "9000-01")


def test_measures_of_shares_are_options_and_in_the_price_file(costs: Costs) -> None:
    assert costs.json("--mig-by", "compute", "--share-by", "use")["total"] == costs.json()["total"]
    assert "--mig-by: measure" in _error(costs, "--mig-by", "size")
    costs.prices.write_text("machines: [{instanceType: dgx-h100, perHour: 40}]\nmigBy: compute\nshareBy: use\n")
    assert costs.json()["total"]
    costs.prices.write_text("migBy: size\n")
    assert "size" in _error(costs)


def _error(costs: Costs, *arguments: str) -> str:
    costs.run(*arguments, code=2)
    return costs.err

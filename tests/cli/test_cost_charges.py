"""`shoal cost --charge` in every mode, with figures that were calculated by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.main import main
from shoal.cost.records import FULL_SHARE, DeviceShare, Holder, Holding, Machine, QuotaKind, QuotaSpan
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges
from shoal.units.calendar_windows import HOUR_MS

START = 1_793_232_000_000
"""2026-10-29T00:00:00Z."""
WINDOW = ("--window", "2026-10-29T00:00:00Z,2026-10-29T10:00:00Z")
PRICES = """
machines: [{instanceType: box, perHour: 8}]
rateCard: [{perGpuHour: 3}]
quotas: {a: 2, b: 2}
"""


class Charges:
    """Ten hours of a node with four GPUs at 8 an hour: 80 in all, 2 for each GPU-hour. Red holds two GPUs, of which it
    borrows one; blue holds one and is preempted at the end; one is free."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys
        self.err = ""
        self._prices = folder / "prices.yaml"
        self._prices.write_text(PRICES)
        devices = tuple(f"g{at}" for at in range(4))
        ten = START + 10 * HOUR_MS
        red = Holder("r-0", "red", "r", queue="a", team="red")
        blue = Holder("b-0", "blue", "b", queue="b", team="blue")
        both = (DeviceShare("g0"), DeviceShare("g1"))
        holdings = {
            "r": Holding(red, "n1", START, START, ten, both, borrowed_ppm=500_000),
            "b": Holding(blue, "n1", START, START, ten, (DeviceShare("g2"),), is_preempted=True),
        }
        history = open_history(folder / "history")
        machines = {"n": Machine("n1", START, None, "box", devices=devices)}
        history.ledger.write(LedgerChanges(START, machines, holdings))
        history.ledger.write(LedgerChanges(ten))
        history.close()

    def run(self, *arguments: str, code: int = 0) -> str:
        history = ("--history", str(self._folder / "history"), "--prices", str(self._prices))
        found = main(["cost", *WINDOW, *history, *arguments])
        out, self.err = self._capsys.readouterr()
        assert found == code, self.err
        return out if code == 0 else self.err

    def write(self, prices: str) -> None:
        self._prices.write_text(prices)

    def record(self, kind: QuotaKind, at_ms: int, *quotas: QuotaSpan) -> None:
        history = open_history(self._folder / "history")
        history.quotas.write(kind, quotas, at_ms)
        history.close()

    def amounts(self, *arguments: str) -> dict[str, str]:
        document: Any = json.loads(self.run(*arguments, "-o", "json"))
        return {row["group"]: row["amount"] for row in document["charges"]}


@pytest.fixture
def priced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Charges:
    return Charges(tmp_path, capsys)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("showback", {"red": "40.00", "blue": "20.00", "": "20.00"}),
        ("request", {"red": "40.00", "blue": "20.00", "": "20.00"}),
        ("request --borrowed-discount 30", {"red": "34.00", "blue": "20.00", "": "26.00"}),
        ("request --borrowed-discount 12.5%", {"red": "37.50", "blue": "20.00", "": "22.50"}),
        ("request --refund-preempted", {"red": "40.00", "blue": "0.00", "": "40.00"}),
        (
            "request --borrowed-discount 30 --refund-preempted --idle platform",
            {"red": "34.00", "blue": "0.00", "platform": "46.00"},
        ),
        ("request --borrowed-discount 100 --idle even", {"red": "40.00", "blue": "40.00"}),
        ("rate-card", {"red": "60.00", "blue": "30.00", "": "-10.00"}),
        ("rate-card --borrowed-discount 30 --refund-preempted", {"red": "51.00", "blue": "0.00", "": "29.00"}),
        # Use was not measured, so nothing is charged by it.
        ("usage", {"red": "0.00", "blue": "0.00", "": "80.00"}),
    ],
)
def test_each_mode_charges_what_was_calculated_by_hand(
    priced: Charges, arguments: str, expected: dict[str, str]
) -> None:
    assert priced.amounts("--charge", *arguments.split()) == expected


def test_the_queue_that_leaves_its_quota_free_pays_for_it(priced: Charges) -> None:
    # Queue b has two GPUs and uses one; the free GPU is 20.
    found = priced.amounts("--charge", "quota", "--by", "queue")
    assert found == {"a": "40.00", "b": "40.00", "": "0.00"}


def test_without_written_quotas_those_of_queues_and_namespaces_count(
    priced: Charges,
) -> None:
    # Without any, it is said, and nothing is charged by request in silence.
    priced.write(PRICES.replace("quotas: {a: 2, b: 2}", ""))
    for by, words in (
        ("queue", "no queue with a quota of GPUs was recorded in the window; write --charge request, or write"),
        ("namespace", "no ResourceQuota with a quota of GPUs was recorded"),
        ("team", "no quota is known of a team; write --by queue (ClusterQueues"),
    ):
        assert words in priced.run("--charge", "quota", "--by", by, code=2)
    priced.record("cluster-queue", START, QuotaSpan("cluster-queue", "gold", 0, None, 2 * FULL_SHARE, "", ("red/a",)))
    priced.record("kai", START, QuotaSpan("kai", "b", 0, None, 2 * FULL_SHARE))
    priced.record("namespace", START, QuotaSpan("namespace", "blue", 0, None, 5 * FULL_SHARE))
    assert priced.amounts("--charge", "quota", "--by", "queue") == {"gold": "40.00", "b": "40.00", "": "0.00"}
    assert priced.amounts("--charge", "quota", "--by", "namespace") == {"red": "40.00", "blue": "40.00", "": "0.00"}


def test_time_before_quotas_were_recorded_is_noted(priced: Charges) -> None:
    priced.write(PRICES.replace("quotas: {a: 2, b: 2}", ""))
    priced.record("kai", START + 8 * HOUR_MS, QuotaSpan("kai", "c", 0, None, 2 * FULL_SHARE))
    assert priced.amounts("--charge", "quota", "--by", "queue")["c"] == "8.00"
    assert "quotas are recorded since 2026-10-29T08:00:00Z" in priced.err


def test_what_was_held_before_quotas_were_recorded_uses_nothing_of_them(priced: Charges) -> None:
    priced.write(PRICES.replace("quotas: {a: 2, b: 2}", ""))
    quotas = [QuotaSpan("kai", name, 0, None, 2 * FULL_SHARE) for name in ("a", "b")]
    priced.record("kai", START + 8 * HOUR_MS, *quotas)
    # In the last two hours a uses all of its quota and b the half; what they held in the eight hours before is no use.
    assert priced.amounts("--charge", "quota", "--by", "queue") == {"a": "40.00", "b": "24.00", "": "16.00"}


def test_the_table_has_discount_and_refund(priced: Charges) -> None:
    shown = priced.run("--charge", "request", "--borrowed-discount", "30", "--refund-preempted")
    rows = [line.split() for line in shown.splitlines()]
    assert ["red", "40.00", "0.00", "6.00", "0.00", "34.00"] in rows
    assert ["blue", "20.00", "0.00", "0.00", "20.00", "0.00"] in rows
    assert "total 80.00 USD" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--borrowed-discount 30", "--borrowed-discount is only for --charge"),
        ("--refund-preempted", "--refund-preempted is only for --charge"),
        ("--charge request --borrowed-discount 101", '--borrowed-discount: "101" is no percentage'),
        ("--charge request --borrowed-discount half", '--borrowed-discount: "half" is no percentage'),
        ("--charge showback --refund-preempted", "showback books nothing"),
    ],
)
def test_options_that_do_not_fit_are_refused(priced: Charges, arguments: str, words: str) -> None:
    assert words in priced.run(*arguments.split(), code=2)

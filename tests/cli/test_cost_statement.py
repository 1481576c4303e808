"""`shoal cost -o html`: a month on one page, which adds up to the invoice and shows names as they are written."""

from __future__ import annotations

import csv
import json
import re
from contextlib import redirect_stdout
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from random import Random

import pytest

from shoal.cli.main import main
from shoal.cost.records import FULL_SHARE, DeviceShare, Holder, Holding, Machine, Span
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.sample_blocks import METRICS
from shoal.store.history.samples import DeviceSample
from shoal.units.calendar_windows import HOUR_MS

GOLDEN = Path(__file__).parent / "golden_statement.html"
START = round(datetime(2026, 9, 30, 22, tzinfo=UTC).timestamp() * 1000)
"""The begin of October in Berlin."""
HOURS = 31 * 24 + 1
"""Of October in Berlin: clocks change."""
TOTAL = (Decimal(40) * HOURS + Decimal(500) * HOURS / 730).quantize(Decimal("0.01"))
HOSTILE = '<script>alert("x")</script>\x1b[31m'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, draw = tmp_path_factory.mktemp("statement"), Random(1)
    devices = tuple(f"g{at}" for at in range(8))
    machine = Machine("m", START, None, "dgx-h100", model="H100-SXM5-80GB", devices=devices)
    holdings = {}
    for device in devices:
        at = draw.randrange(0, 48)
        while at < HOURS:
            end = at + draw.randrange(2, 60)
            team = draw.choice(["vision", "language", "speech & audio", HOSTILE])
            holder = Holder(f"p{device}-{at}", "lab", job="train", team=team)
            moments = (START + at * HOUR_MS, START + at * HOUR_MS + 600_000, START + min(end, HOURS) * HOUR_MS)
            holdings[f"{device}-{at}"] = Holding(holder, "m", *moments, (DeviceShare(device),))
            at = end + draw.choice([0, 3, 20])
    history = open_history(folder / "history")
    history.ledger.write(LedgerChanges(START, {"m": machine}))
    gap = Span(START + 100 * HOUR_MS, START + 110 * HOUR_MS)
    history.ledger.write(LedgerChanges(START + HOURS * HOUR_MS, {}, holdings, gap=gap))
    for at in range(0, 48 * HOUR_MS, 1_800_000):
        values: list[float | None] = [0.0 if at // HOUR_MS % 3 else 80.0, *(None for _ in METRICS[1:])]
        history.samples.add(START + at, [DeviceSample(device, values) for device in devices])
    history.samples.compact(START + 48 * HOUR_MS)
    history.close()
    prices = "machines:\n- {instanceType: dgx-h100, perHour: '40.00'}\nsharedCosts:\n- {name: support, perMonth: 500}\n"
    (folder / "prices.yaml").write_text(prices)
    return folder


def _statement(folder: Path, *words: str, window: str = "2026-10") -> str:
    sources = ["--history", str(folder / "history"), "--prices", str(folder / "prices.yaml")]
    with redirect_stdout(StringIO()) as out:
        assert main(["cost", "--window", window, "--time-zone", "Europe/Berlin", "-o", "html", *sources, *words]) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def october(folder: Path) -> str:
    return _statement(folder)


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("td", "th") and self.rows:
            self.rows[-1][-1] += data.strip()


def test_the_page_is_the_golden_one(october: str) -> None:
    found = re.sub("<li>nothing was recorded after [^<]*</li>", "", october)
    assert found == GOLDEN.read_text()


def test_the_parts_of_the_page_add_up_to_the_invoice(october: str) -> None:
    page = _Page(october)
    names = {row[0]: row for row in page.rows if row}
    assert Decimal(names["total"][1].replace(",", "")) == TOTAL
    teams = ("vision", "language", "speech & audio")
    groups = [
        Decimal(row[-2].replace(",", "")) for row in page.rows if row[0] in teams or row[0].startswith("<script>")
    ]
    assert len(groups) == 4
    assert sum(groups) == Decimal(names["all"][-2].replace(",", ""))
    others = [
        Decimal(row[1].replace(",", "")) for row in page.rows if len(row) == 3 and row[0] not in ("class", "total")
    ]
    assert sum(groups) + sum(others) == TOTAL
    assert "unknown" in names
    assert "shared" in names


def test_the_page_has_a_bar_for_each_day_and_one_is_longer(october: str) -> None:
    titles = re.findall(r"<title>(2026-[0-9-]+) \(([0-9]+) hours\): ([0-9,.]+) USD", october)
    assert [day for day, _, _ in titles] == [f"2026-10-{day:02}" for day in range(1, 32)]
    assert {day: hours for day, hours, _ in titles if hours != "24"} == {"2026-10-25": "25"}
    assert sum(Decimal(amount.replace(",", "")) for _, _, amount in titles) == Decimal(40) * HOURS
    assert "2026-10-01 00:00+02:00 until 2026-11-01 00:00+01:00, time zone Europe/Berlin" in october


def test_names_are_text_and_nothing_is_loaded(october: str) -> None:
    page = _Page(october)
    assert "script" not in page.tags
    assert not {"src", "href", "onclick"} & page.attributes
    assert "http" not in october.replace("http-equiv", "")
    assert "\x1b" not in october
    assert "&lt;script&gt;" in october
    assert "default-src 'none'" in october


def test_a_page_of_another_window_names_its_days(folder: Path) -> None:
    found = _statement(folder, "--by", "job", window="2026-10-24,2026-10-27")
    assert "<h1>GPU costs, 2026-10-24 to 2026-10-26</h1>" in found
    assert "<h2>By job</h2>" in found


def test_many_groups_are_one_line(folder: Path) -> None:
    page = _Page(_statement(folder, "--by", "pod"))
    (others,) = [row for row in page.rows if row[0].endswith(" others")]
    pods = [row for row in page.rows if row[0].startswith("lab/p")]
    (everything,) = [row for row in page.rows if row[0] == "all"]
    assert len(pods) == 30
    assert sum(Decimal(row[-2].replace(",", "")) for row in [*pods, others]) == Decimal(everything[-2].replace(",", ""))


def test_modes_of_charge_have_no_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["cost", "--history", str(folder / "history"), "-o", "html", "--charge", "request"]
    assert main(words) == 2
    assert "--charge does not go with -o html" in capsys.readouterr().err


def test_a_month_is_the_sum_of_its_days_where_gpus_are_shared_by_use(tmp_path: Path) -> None:
    """Two pods have each half of a GPU for two days; one works on the first day, the other a little on the second."""
    history = open_history(tmp_path / "history")
    end = START + 48 * HOUR_MS
    machine = Machine("m", START, None, "box", devices=("g",))
    held = {
        pod: Holding(Holder(pod, team=pod), "m", START, START, end, (DeviceShare("g", FULL_SHARE // 2, f"g-{pod}"),))
        for pod in ("a", "b")
    }
    history.ledger.write(LedgerChanges(START, {"m": machine}, held))
    for at in range(0, 48 * HOUR_MS, 300_000):
        is_first = at < 24 * HOUR_MS
        used = {"a": 100.0 if is_first else 0.0, "b": 0.0 if is_first else 10.0}
        empty: list[float | None] = [None for _ in METRICS[1:]]
        history.samples.add(START + at, [DeviceSample(f"g-{pod}", [value, *empty]) for pod, value in used.items()])
    history.ledger.write(LedgerChanges(end, {}, held))
    history.samples.compact(end)
    history.close()
    (tmp_path / "prices.yaml").write_text("machines:\n- {instanceType: box, perHour: 1}\n")
    words = ["--history", str(tmp_path / "history"), "--prices", str(tmp_path / "prices.yaml"), "--share-by", "use"]
    words += ["--time-zone", "Europe/Berlin", "--window", "2026-10-01,2026-10-03"]
    with redirect_stdout(StringIO()) as out:
        assert main(["cost", *words, "-o", "json"]) == 0
    totals = {row["group"]: Decimal(row["total"]) for row in json.loads(out.getvalue())["groups"]}
    with redirect_stdout(StringIO()) as out:
        assert main(["cost", *words, "-o", "csv"]) == 0
    days: dict[str, Decimal] = {}
    for row in csv.DictReader(StringIO(out.getvalue())):
        days[row["group"]] = days.get(row["group"], Decimal(0)) + Decimal(row["amount"])
    assert totals == {"a": 24, "b": 24}
    assert {name: days[name] for name in totals} == totals

"""The page of costs where some nodes have no price: they are named, and everything else is shown as a part."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from shoal.cli.cost_source import CostSource
from shoal.cli.web_history import RecordedHistory
from shoal.client.clock import WallClock
from shoal.cost.records import DeviceShare, Holder, Holding, Machine
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges
from shoal.units.calendar_windows import HOUR_MS
from shoal.units.errors import UserError
from shoal.web.cost_page import CostPage
from shoal.web.history_answers import CostQuestion
from shoal.web.ports import PageCommands

START = 1_793_232_000_000
QUESTION = CostQuestion("team", "7d")


def recorded(folder: Path, prices: str) -> RecordedHistory:
    """Ten hours of two nodes with a GPU each, which team red holds."""
    machines = {
        "a": Machine("priced", START, None, "box", devices=("g0",)),
        "b": Machine("odd", START, None, "p9.secret", devices=("g1",)),
    }
    holdings = {
        name: Holding(Holder(name, "lab", team="red"), name, START, START, None, (DeviceShare(device),))
        for name, device in (("priced", "g0"), ("odd", "g1"))
    }
    history = open_history(folder / "history")
    history.ledger.write(LedgerChanges(START, machines, holdings))
    history.ledger.write(LedgerChanges(START + 10 * HOUR_MS))
    history.close()
    file = folder / "prices.yaml"
    file.write_text(prices)
    return RecordedHistory(CostSource(history=folder / "history", prices=file), WallClock())


async def page_of(folder: Path, *, lists_nodes: bool) -> tuple[str, Decimal]:
    prices = "machines: [{instanceType: box, perHour: 8}]\nbudgets: [{team: red, perMonth: 100, enforce: spent}]\n"
    answer = await recorded(folder, prices).costs(QUESTION, None)
    page = CostPage(PageCommands()).page(QUESTION, answer, lists_nodes=lists_nodes)
    return " ".join(str(part) for part in page.parts.values()), answer.total


async def test_a_missing_price_is_named_and_the_other_sums_are_shown_as_a_part(tmp_path: Path) -> None:
    text, total = await page_of(tmp_path, lists_nodes=True)
    assert "price missing: node odd (p9.secret, has no price)" in text
    assert "machines: [{instanceType: p9.secret, perHour: AMOUNT}]" in text
    assert "partial total USD" in text
    assert total == 80
    assert "80.00" in text
    # Its budget counts the part too, and says that new work waits.
    assert "when it is spent" in text


async def test_a_viewer_who_lists_no_nodes_sees_how_many_they_are(tmp_path: Path) -> None:
    text, total = await page_of(tmp_path, lists_nodes=False)
    assert "price missing: 1 node (p9.secret, has no price)" in text
    assert "node odd" not in text
    assert total == 80


async def test_where_no_node_has_a_price_the_prices_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no price is known of box"):
        await recorded(tmp_path, "currency: EUR\n").costs(QUESTION, None)

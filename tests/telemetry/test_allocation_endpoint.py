"""OpenCost's API over HTTP: answers from a recorded history, and who gets them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from shoal.client.refusals import UnauthorizedError
from shoal.cost.allocations import OTHERS, AllocationViewer
from shoal.cost.cost_settings import CostSettings
from shoal.cost.hourly_prices import HeldGpus, HourlyPrice
from shoal.cost.prices.price_file import MachinePrice, PriceFile
from shoal.cost.records import DeviceShare, Holder, Holding, Machine
from shoal.prometheus.exposition import text_of
from shoal.prometheus.registry import Registry
from shoal.store.history.allocation_reader import AllocationReader
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges
from shoal.telemetry.allocation_endpoint import AllocationEndpoint, AllocationSettings, Viewing
from shoal.telemetry.prices import CostFigures, measure_prices
from shoal.units.calendar_windows import HOUR_MS

WINDOW = "window=1970-01-01T00:00:00Z,1970-01-01T10:00:00Z"
COSTS = CostSettings(PriceFile(machines=(MachinePrice(per_hour=Decimal(80), instance_type="box"),)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    devices = tuple(f"g{at}" for at in range(8))
    machine = Machine("n1", 0, None, "box", model="H100-SXM5-80GB", devices=devices)
    holdings = {
        name: Holding(Holder(name, name, team=name), "n1", 0, 0, 5 * HOUR_MS, (DeviceShare(device),))
        for name, device in (("lab", "g0"), ("ops", "g1"))
    }
    history = open_history(tmp_path)
    history.ledger.write(LedgerChanges(0, {"n": machine}, holdings))
    history.ledger.write(LedgerChanges(10 * HOUR_MS))
    history.close()
    return tmp_path


async def viewing(token: str, namespaces: Collection[str]) -> AllocationViewer:
    if token == "wrong":  # noqa: S105 - of a test
        raise UnauthorizedError("Unauthorized")
    return AllocationViewer(lambda namespace: namespace == token, lists_nodes=token == "shop")  # noqa: S105 - of a test


Asked = Callable[..., Any]


@asynccontextmanager
async def served(folder: Path, viewers: Viewing | None = None, costs: CostSettings = COSTS) -> AsyncIterator[Asked]:
    settings = AllocationSettings(port=0)
    endpoint = AllocationEndpoint(AllocationReader(folder, costs), settings, lambda: 10 * 3600.0, viewers)
    await endpoint.start()
    try:
        async with aiohttp.ClientSession() as session:

            async def ask(path: str, **headers: str) -> tuple[int, Any]:
                async with session.get(endpoint.url + path, headers=headers) as answer:
                    return answer.status, await answer.json()

            yield ask
    finally:
        await endpoint.close()


@pytest.mark.parametrize("path", ["allocation", "allocation/compute", "model/allocation", "model/allocation/compute"])
async def test_costs_are_answered_at_every_path_of_opencost(folder: Path, path: str) -> None:
    async with served(folder) as ask:
        status, found = await ask(f"{path}?{WINDOW}&aggregate=namespace&includeIdle=true")
    assert status == found["code"] == 200
    (first,) = found["data"]
    assert {name: one["totalCost"] for name, one in first.items()} == {"lab": 50.0, "ops": 50.0, "__idle__": 700.0}
    assert first["lab"]["gpuHours"] == 5.0
    assert first["lab"]["window"] == {"start": "1970-01-01T00:00:00Z", "end": "1970-01-01T10:00:00Z"}


async def test_a_wrong_request_says_what_is_wrong(folder: Path) -> None:
    async with served(folder) as ask:
        assert await ask("allocation") == (400, {"code": 400, "message": "window: is missing; write window=7d"})
        assert (await ask("other"))[0] == 404
    async with served(folder, costs=CostSettings()) as ask:
        status, found = await ask(f"allocation?{WINDOW}")
        assert status == 400
        assert "no price is known of box" in found["message"]


async def test_a_folder_without_a_history_is_named(tmp_path: Path) -> None:
    async with served(tmp_path) as ask:
        status, found = await ask(f"allocation?{WINDOW}")
    assert status == 400
    assert "has no history" in found["message"]


async def test_a_name_that_another_site_resolves_to_loopback_gets_nothing(folder: Path) -> None:
    async with served(folder) as ask:
        assert (await ask(f"allocation?{WINDOW}", Host="evil.example:9003"))[0] == 421


async def test_with_viewers_a_token_is_needed_and_hides_other_namespaces(folder: Path) -> None:
    async with served(folder, viewing) as ask:
        assert (await ask(f"allocation?{WINDOW}"))[0] == 401
        assert (await ask(f"allocation?{WINDOW}", Authorization="Bearer wrong"))[0] == 401
        status, found = await ask(f"allocation?{WINDOW}&aggregate=team&includeIdle=1", Authorization="Bearer lab")
    assert status == 200
    (first,) = found["data"]
    assert set(first) == {"lab", OTHERS, "__idle__"}
    assert first[OTHERS]["totalCost"] == 50.0


async def test_who_may_not_list_nodes_gets_no_name_of_a_node(folder: Path) -> None:
    by_node = f"allocation?{WINDOW}&includeIdle=1&idleByNode=1"
    async with served(folder, viewing) as ask:
        status, found = await ask(by_node, Authorization="Bearer lab")
        assert (status, found["message"]) == (400, "idleByNode: your account may not list nodes")
        assert "n1/__idle__" in (await ask(by_node, Authorization="Bearer shop"))[1]["data"][0]
    async with served(folder, viewing, CostSettings()) as ask:
        status, found = await ask(f"allocation?{WINDOW}", Authorization="Bearer lab")
        assert (status, found["message"]) == (400, "--prices: no price of any node is known")


async def test_a_window_before_the_history_began_is_said(folder: Path) -> None:
    async with served(folder) as ask:
        _, found = await ask("allocation?window=1969-12-31T00:00:00Z,1970-01-01T10:00:00Z")
    assert "the history begins at 1970-01-01T00:00:00Z" in found["warning"]


def test_prices_are_metrics_under_the_names_of_opencost() -> None:
    registry = Registry()
    price = HourlyPrice("n1", "box", "here", 8, Decimal("9.5"), Decimal("0.1"), Decimal("0.01"), Decimal(80))
    machine = Machine("n1", 0, None, "box", region="here", capacity="spot")
    figures = CostFigures((price,), (machine,), (HeldGpus("lab", "p", "n1", "red", 0.5),))
    measure_prices(registry, lambda: figures)
    text = text_of(registry.read()).decode()
    labels = 'instance="n1",node="n1",instance_type="box",region="here"'
    assert f"node_gpu_hourly_cost{{{labels}}} 9.5\n" in text
    assert f"node_total_hourly_cost{{{labels}}} 80\n" in text
    assert f"kubecost_node_is_spot{{{labels}}} 1\n" in text
    held = 'container_gpu_allocation{instance="n1",namespace="lab",node="n1",pod="p",team="red"} 0.5\n'
    assert held in text

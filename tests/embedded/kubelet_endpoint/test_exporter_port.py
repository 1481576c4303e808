"""The port for Prometheus: a path for each node, and the list of them all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from build.endpoint_clients import Doors, doors_of
from build.fake_nodes import FakeNodes


@pytest.fixture
def nodes() -> FakeNodes:
    return FakeNodes("gpu-0", "gpu-1", "big")


@pytest.fixture
async def doors(nodes: FakeNodes) -> AsyncIterator[Doors]:
    async with doors_of(nodes, None) as found:
        yield found


async def test_each_node_has_its_exporter_under_its_path(doors: Doors) -> None:
    assert await doors.scrape("/nodes/gpu-1/metrics") == (200, 'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="gpu-1"} 85\n')


async def test_a_node_that_is_not_there_is_answered_with_the_nearest_names(doors: Doors) -> None:
    code, words = await doors.scrape("/nodes/gpu-7/metrics")
    assert (code, words) == (404, 'node "gpu-7" is not simulated here; nearest: gpu-1, gpu-0\n')
    assert await doors.scrape("/nodes/zzz/metrics") == (404, 'node "zzz" is not simulated here\n')


async def test_a_node_that_is_cut_off_is_not_scraped(doors: Doors, nodes: FakeNodes) -> None:
    nodes["big"].reachable = False
    assert await doors.scrape("/nodes/big/metrics") == (503, 'node "big" cannot be reached\n')
    code, text = await doors.scrape("/metrics")
    assert code == 200
    assert 'shoal_fleet_nodes{reachable="true"} 2\n' in text
    assert 'shoal_fleet_nodes{reachable="false"} 1\n' in text
    assert 'shoal_fleet_scrapes_total{code="503"} 1\n' in text


async def test_prometheus_finds_every_node_where_it_asked(doors: Doors) -> None:
    found = json.loads((await doors.scrape("/sd"))[1])
    host = doors.ports.metrics_url.removeprefix("http://")
    assert [one["targets"] for one in found] == [[host]] * 3
    assert found[0]["labels"] == {"__metrics_path__": "/nodes/gpu-0/metrics", "instance": "gpu-0", "node": "gpu-0"}
    for one in found:
        assert (await doors.scrape(one["labels"]["__metrics_path__"]))[0] == 200

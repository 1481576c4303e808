"""A pod whose limits of virtual GPUs are not enforced gets an Event."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.agent.sharing.virtual_limits import UnenforcedLimits
from shoal.client.item import Obj
from shoal.client.kind import EVENTS
from shoal.client.recorder import Recorder


def pod(limit: str = "nvidia.com/gpumem", phase: str = "Pending") -> Obj:
    return {
        "metadata": {"name": "small", "namespace": "default", "uid": "1"},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {limit: "3000"}}}]},
        "status": {"phase": phase},
    }


async def recorded(folder: Path, given: Obj, library: Path) -> list[tuple[str, str, str]]:
    async with small_cluster(folder) as cluster:
        recorder = Recorder(cluster.api, cluster.clock, "shoal-agent")
        writing = asyncio.create_task(recorder.run())
        UnenforcedLimits(recorder, library).look(given)
        await recorder.settled()
        writing.cancel()
        events = [item.obj() for item in (await cluster.api.list(EVENTS, "default")).items]
        return [(one["involvedObject"]["name"], one["type"], one["reason"]) for one in events]


@virtual
async def test_the_event_names_the_pod(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = await recorded(tmp_path, pod(), tmp_path / "libvgpu.so")
    assert found == [("small", "Warning", "GPULimitNotEnforced")]
    assert "pod default/small: nvidia.com/gpumem limits nothing on this node" in caplog.text


@virtual
async def test_a_pod_without_such_limits_or_that_has_ended_gets_none(tmp_path: Path) -> None:
    assert await recorded(tmp_path / "a", pod("nvidia.com/gpu"), tmp_path / "libvgpu.so") == []
    assert await recorded(tmp_path / "b", pod(phase="Succeeded"), tmp_path / "libvgpu.so") == []


@virtual
async def test_with_the_library_there_is_no_event(tmp_path: Path) -> None:
    library = tmp_path / "libvgpu.so"
    library.touch()
    assert await recorded(tmp_path / "a", pod(), library) == []

"""A fault in a round of the Volcano admission is repaired in the next round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.live_schedulers import LiveScheduler, add_node, start_scheduler
from build.virtual_time import virtual
from build.volcano_scenes import bare_volcano, volcano
from shoal.controllers.scheduling_loop.disciplines import Disciplines
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.controllers.volcano.admission import VolcanoAdmission
from shoal.store.watched.cluster import WatchSettings


class Faulty:
    """A scheduler whose places cannot be asked for, so many times."""

    def __init__(self, live: SchedulerState, times: int) -> None:
        self._scheduling = live
        self.left = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduling, name)

    @property
    def placement(self) -> Any:
        if self.left and self._scheduling.cluster.row_of:
            self.left -= 1
            raise RuntimeError("one odd fact")
        return self._scheduling.placement


@virtual
async def test_pods_that_are_kept_wait_for_no_further_event(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    faulty: list[Faulty] = []

    def prepare(live: LiveScheduler) -> None:
        disciplines = Disciplines(live.loop.intake, live.loop.clock)
        faulty.append(Faulty(live.loop, 0))
        disciplines.add(lambda onward: VolcanoAdmission(live.context, live.served, faulty[0], onward=onward))
        live.loop.discipline = disciplines

    async with bare_volcano(tmp_path) as scene:
        scene.cluster.start(volcano)
        await add_node(scene.cluster, "n1", gpus=8, cpu="64")
        start_scheduler(scene.cluster, watch=WatchSettings(schedulers=frozenset({"volcano"})), prepare=prepare)
        await scene.queue("a", deserved={"nvidia.com/gpu": "4"})
        await scene.group("g", minMember=1, queue="a")
        await scene.cluster.pass_time(5)
        faulty[0].left = 3
        await scene.pod("p", "g", gpus=1)
        await scene.cluster.pass_time(20)
        assert faulty[0].left == 0
        assert "admission cycle of VolcanoAdmission failed" in caplog.text
        assert await scene.bound() == {"p"}

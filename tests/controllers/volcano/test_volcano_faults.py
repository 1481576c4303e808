"""A fault in a round of the Volcano admission is repaired in the next round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.live_brains import LiveBrain, add_node, start_brain
from build.virtual_time import virtual
from build.volcano_scenes import bare_volcano, volcano
from shoal.controllers.brain.desks import Desks
from shoal.controllers.brain.parts import Holder
from shoal.controllers.volcano.admission import VolcanoAdmission
from shoal.store.watched.world import WatchSettings


class Faulty:
    """A brain whose places cannot be asked for, so many times."""

    def __init__(self, brain: Holder, times: int) -> None:
        self._brain = brain
        self.left = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._brain, name)

    @property
    def placement(self) -> Any:
        if self.left and self._brain.cluster.row_of:
            self.left -= 1
            raise RuntimeError("one odd fact")
        return self._brain.placement


@virtual
async def test_pods_that_are_kept_wait_for_no_further_event(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    faulty: list[Faulty] = []

    def prepare(brain: LiveBrain) -> None:
        desks = Desks(brain.brain.intake, brain.brain.clock)
        faulty.append(Faulty(brain.brain, 0))
        desks.add(lambda onward: VolcanoAdmission(brain.context, brain.served, faulty[0], onward=onward))
        brain.brain.desk = desks

    async with bare_volcano(tmp_path) as scene:
        scene.cluster.start(volcano)
        await add_node(scene.cluster, "n1", gpus=8, cpu="64")
        start_brain(scene.cluster, watch=WatchSettings(schedulers=frozenset({"volcano"})), prepare=prepare)
        await scene.queue("a", deserved={"nvidia.com/gpu": "4"})
        await scene.group("g", minMember=1, queue="a")
        await scene.cluster.pass_time(5)
        faulty[0].left = 3
        await scene.pod("p", "g", gpus=1)
        await scene.cluster.pass_time(20)
        assert faulty[0].left == 0
        assert "a round of VolcanoAdmission broke" in caplog.text
        assert await scene.bound() == {"p"}

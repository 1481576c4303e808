"""A step of Volcano's discipline that fails stops nobody else, exceeds no quota, and is tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.live_schedulers import add_node, is_bound, pod
from build.odd_faults import odd
from build.virtual_time import virtual
from build.volcano_scenes import bare_volcano, volcano
from shoal.client.kind import PODS


@virtual
async def test_while_a_step_fails_others_are_placed_and_its_own_pods_wait(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with bare_volcano(tmp_path) as scene:
        scene.cluster.start(volcano)
        await add_node(scene.cluster, "n1", gpus=8, cpu="64")
        scene.start_scheduler(None, None, "shoal")
        await scene.queue("a", capability={"nvidia.com/gpu": "1"})
        await scene.group("g", minMember=1, queue="a")
        await scene.cluster.pass_time(5)
        fault = odd(scene.disciplines[0].discipline, "_run", set(range(3)), after=False)
        await scene.pod("p", "g", gpus=1)
        await scene.pod("too-much", "g", gpus=1)
        await scene.cluster.create(PODS, pod("other", gpus=1))
        await scene.cluster.until(lambda: is_bound(scene.cluster, "other"))
        assert fault.calls <= 3
        assert await scene.bound() == {"other"}
        await scene.cluster.pass_time(20)
        assert "a step of VolcanoAdmission failed" in caplog.text
        assert len(await scene.bound()) == 2

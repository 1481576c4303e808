"""When the statuses of groups are written, on a whole control plane: bindings come first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from build.jumping_clock import JumpingClock
from build.live_schedulers import LiveScheduler, add_node
from build.virtual_time import virtual
from build.volcano_scenes import VolcanoScene, bare_volcano, task, volcano
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS
from shoal.controllers.scheduling_loop.scheduling_loop import SchedulingLoopSettings
from shoal.controllers.volcano.admission import VolcanoAdmission
from shoal.controllers.volcano.views import group_of
from shoal.store.watched.cluster import WatchSettings


def _phases(live: LiveScheduler) -> dict[str, list[str]]:
    """The phases through which each group passes from now on, one for each change of its object."""
    found: dict[str, list[str]] = {}

    def changed(_before: object, after: object) -> None:
        group = group_of(after) if after is not None else None  # type: ignore[arg-type]
        if group is not None:
            found.setdefault(group.metadata.name, []).append(group.status.phase)

    live.context.informers.of(VOLCANO_POD_GROUPS).on_change(changed)
    return found


async def _groups(scene: VolcanoScene, count: int) -> list[str]:
    names = [f"g-{number}" for number in range(count)]
    for name in names:
        await scene.group(name, minMember=1)
        await scene.pod(name, name, gpus=1)
    return names


@virtual
async def test_groups_of_a_backlog_that_start_at_once_get_one_status_each(tmp_path: Path) -> None:
    async with bare_volcano(tmp_path) as scene:
        for number in range(5):
            await add_node(scene.cluster, f"n{number}", gpus=8, cpu="64", memory="32Gi")
        scene.cluster.start(volcano)
        names = await _groups(scene, 40)
        live = scene.scheduler()
        phases = _phases(live)
        live.start()
        await scene.cluster.until(lambda: scene.phase_is(names[-1], "Running"))
        await scene.cluster.pass_time(10)
        assert await scene.bound() == set(names)
        # The object as it was found, and the one change.
        assert {name: tuple(seen) for name, seen in phases.items()} == dict.fromkeys(names, ("", "Running"))


@virtual
async def test_a_group_that_has_its_pods_and_no_node_is_reported_as_admitted(tmp_path: Path) -> None:
    async with bare_volcano(tmp_path) as scene:
        scene.cluster.start(volcano)
        await _groups(scene, 1)
        live = scene.scheduler()
        phases = _phases(live)
        live.start()
        await scene.cluster.until(lambda: scene.phase_is("g-0", "Inqueue"), within_s=3)
        await scene.cluster.pass_time(5)
        assert phases["g-0"] == ["", "Inqueue"]


@virtual
async def test_the_admission_of_a_group_without_pods_is_written_at_once(tmp_path: Path) -> None:
    async with bare_volcano(tmp_path) as scene:
        await add_node(scene.cluster, "n", gpus=8, cpu="64", memory="32Gi")
        scene.cluster.start(volcano)
        scene.start_scheduler()
        await scene.cluster.pass_time(2)
        await scene.group("first", minMember=2)
        await scene.cluster.until(lambda: scene.phase_is("first", "Inqueue"), within_s=0.3)
        await scene.group("second", minMember=2)
        # Within the second in which no other status is written.
        await scene.cluster.until(lambda: scene.phase_is("second", "Inqueue"), within_s=0.3)


@virtual
async def test_groups_are_admitted_where_another_scheduler_places_the_pods(tmp_path: Path) -> None:
    async with bare_volcano(tmp_path) as scene:
        await add_node(scene.cluster, "n", gpus=4, cpu="64", memory="32Gi")
        scene.cluster.start(volcano)
        settings = SchedulingLoopSettings(places=False)
        live = LiveScheduler(scene.cluster, watch=WatchSettings(schedulers=frozenset({"volcano"})), settings=settings)
        live.loop.discipline = VolcanoAdmission(live.context, live.served, live.loop, places=False)
        live.start()
        await scene.queue("team", capability={"nvidia.com/gpu": 4})
        job = {"tasks": [task(replicas=2, gpus=2)], "minAvailable": 2, "queue": "team", "schedulerName": "other"}
        await scene.cluster.create(VOLCANO_JOBS, {"metadata": {"name": "a"}, "spec": job})
        await scene.cluster.until(lambda: _has_pods(scene, 2), within_s=5)
        await scene.cluster.create(VOLCANO_JOBS, {"metadata": {"name": "b"}, "spec": job})
        await scene.cluster.pass_time(5)
        # The first has reserved all of the queue.
        assert await _has_pods(scene, 2)
        assert await scene.bound() == set()


async def _has_pods(scene: VolcanoScene, count: int) -> bool:
    return len(await scene.pods()) == count


@virtual
async def test_a_clock_that_is_set_back_stops_no_statuses(tmp_path: Path) -> None:
    async with bare_volcano(tmp_path) as scene:
        await add_node(scene.cluster, "n", gpus=8, cpu="64", memory="32Gi")
        scene.cluster.start(volcano)
        true, clock = scene.cluster.clock, JumpingClock(scene.cluster.clock)
        scene.cluster.clock = clock  # type: ignore[assignment]
        scene.start_scheduler()
        scene.cluster.clock = true
        await scene.pod("g-1", "g", gpus=1)
        await scene.group("g", minMember=1)
        await scene.cluster.until(lambda: scene.phase_is("g", "Running"))
        clock.ahead_s = -3600
        await scene.pod("h-1", "h", gpus=1)
        await scene.group("h", minMember=1)
        await scene.cluster.until(lambda: scene.phase_is("h", "Running"), within_s=20)


class _Sessions:
    def __init__(self) -> None:
        self.observed = 0

    def observe(self, seconds: Mapping[str, float], victims: Mapping[str, Mapping[str, int]]) -> None:
        del seconds, victims
        self.observed += 1


@virtual
async def test_a_session_that_only_admits_is_not_timed_as_one_of_no_length(tmp_path: Path) -> None:
    async with bare_volcano(tmp_path) as scene:
        await add_node(scene.cluster, "n", gpus=4, cpu="64", memory="32Gi")
        scene.cluster.start(volcano)
        settings, sessions = SchedulingLoopSettings(places=False), _Sessions()
        live = LiveScheduler(scene.cluster, watch=WatchSettings(schedulers=frozenset({"volcano"})), settings=settings)
        admission = VolcanoAdmission(live.context, live.served, live.loop, places=False)
        admission.measure(sessions, lambda: 0.0)
        live.loop.discipline = admission
        live.start()
        await scene.group("g", minMember=1)
        await scene.cluster.until(lambda: scene.phase_is("g", "Inqueue"))
        assert sessions.observed == 0

"""One thing breaks while pods are decided about and bound: nobody keeps a place that nobody binds them to, and the rest
goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from build.live_schedulers import LiveScheduler, add_node, is_bound, places, pod, start_scheduler
from build.odd_writers import Broken, writing_by
from build.small_clusters import small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.item import Item
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES, Kind
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import ForbiddenError
from shoal.client.write_through import WriteThroughApi
from shoal.controllers.scheduler.executor import SchedulerExecutor
from shoal.controllers.scheduling_loop.scheduling_loop import SchedulingLoopSettings
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import STEPS
from shoal.engine.cycle_state import CycleState
from shoal.engine.events import Event, NodeGone, NodeSeen, PodArrived, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.plan import Plan
from shoal.engine.steps.allocate import allocate
from shoal.units.errors import ConflictError


class OneFault:
    """Raises when it is called for the first time."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == 1:
            raise KeyError("one odd fact")


@virtual
async def test_a_round_that_breaks_after_pods_were_placed_binds_them_all_the_same(tmp_path: Path) -> None:
    fault = OneFault()

    def odd(round_: CycleState) -> None:
        if round_.intentions:
            fault()

    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, settings=SchedulingLoopSettings(steps=(allocate, odd)))
        await add_node(cluster, "n1", gpus=1)
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"), 5)
        assert fault.calls == 1


@virtual
async def test_a_step_that_always_breaks_keeps_nobody_from_the_room_that_is_there(tmp_path: Path) -> None:
    def odd(_round: CycleState) -> None:
        raise KeyError("one odd fact")

    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, settings=SchedulingLoopSettings(steps=(*STEPS, odd)))
        await add_node(cluster, "n1", gpus=2)
        for name in "abc":
            await cluster.create(PODS, pod(name, gpus=1))
            await cluster.pass_time(1)
        assert await places(cluster) == {"a": "n1", "b": "n1", "c": ""}


class OddIntake(Intake):
    """Breaks on the first event of a kind."""

    def __init__(self, cluster: Cluster, kind: type) -> None:
        super().__init__(cluster)
        self._kind = kind
        self.fault = OneFault()

    def apply(self, event: Event) -> None:
        if isinstance(event, self._kind):
            self.fault()
        super().apply(event)


@pytest.mark.parametrize("kind", [PodArrived, PodBound, PodGone, NodeSeen, NodeGone])
def test_what_could_not_be_taken_in_is_told_again_as_it_stands_then(kind: type, tmp_path: Path) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path) as cluster:
            live = start_scheduler(cluster)
            live.loop.intake = odd = OddIntake(live.loop.cluster, kind)
            await add_node(cluster, "n0", gpus=1)
            await cluster.create(PODS, pod("there", gpus=1, nodeName="n0"))
            await cluster.pass_time(3)
            await cluster.create(PODS, pod("next", gpus=1))
            await cluster.pass_time(3)
            assert (await places(cluster))["next"] == ""
            await cluster.delete(PODS, "there", Deletion(grace_s=0))
            await cluster.until(lambda: is_bound(cluster, "next"), 5)
            await cluster.delete(NODES, "n0")
            await cluster.pass_time(3)
            assert odd.fault.calls >= 2
            assert not live.loop.cluster.row_of

    in_virtual_time(story())


@virtual
async def test_what_a_broken_step_would_have_done_is_done_a_moment_later(tmp_path: Path) -> None:
    fault = OneFault()

    def odd(round_: CycleState) -> None:
        if "default/high" in round_.cluster.pending:
            fault()

    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, settings=SchedulingLoopSettings(steps=(allocate, odd, *STEPS[1:])))
        await add_node(cluster, "n1", gpus=1)
        await cluster.create(PODS, pod("low", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "low"), 5)
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await cluster.create(PODS, pod("high", gpus=1, priorityClassName="high"))

        async def has_yielded() -> bool:
            return "deletionTimestamp" in (await cluster.get(PODS, "low"))["metadata"]

        await cluster.until(has_yielded, 5)
        assert fault.calls > 1


class _Counting:
    """PlanExecutor that only look on, and break at it."""

    def carry_out(self, plan: Plan) -> None:
        raise KeyError(f"{len(plan.intentions)} are too many")

    def outcomes(self) -> Sequence[Event]:
        return ()

    async def run(self) -> None:
        raise KeyError("nothing to count")


@virtual
async def test_hands_that_break_leave_the_work_to_the_others(tmp_path: Path) -> None:
    def beside(live: LiveScheduler) -> None:
        live.loop.executors = (_Counting(), *live.loop.executors)

    async with small_cluster(tmp_path) as cluster:
        live = start_scheduler(cluster, prepare=beside)
        await add_node(cluster, "n1", gpus=1)
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"), 5)
        assert not any(task.done() for task in live.tasks)


@pytest.mark.parametrize("times", [1, 3])
def test_whatever_breaks_while_a_pod_is_bound_it_is_tried_again(times: int, tmp_path: Path) -> None:
    async def story() -> None:
        writer = Broken(times, KeyError("deviceClassName"))
        async with small_cluster(tmp_path) as cluster:
            start_scheduler(cluster, prepare=writing_by(writer))
            await add_node(cluster, "n1", gpus=1)
            await cluster.create(PODS, pod("a", gpus=1))
            await cluster.until(lambda: is_bound(cluster, "a"), 10)
            assert writer.calls == times + 1

    in_virtual_time(story())


class _Speechless(WriteThroughApi):
    """Nobody can be told anything."""

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        if kind == PODS and subresource == "status":
            raise ForbiddenError("may not")
        return await super().patch(kind, namespace, name, patch, subresource)


@virtual
async def test_a_pod_that_cannot_be_told_why_it_is_not_bound_gives_its_place_back_all_the_same(tmp_path: Path) -> None:
    writer = Broken(3, ConflictError("taken"))
    async with small_cluster(tmp_path) as cluster:
        api = _Speechless(cluster.api, cluster.informers)
        start_scheduler(cluster, api, prepare=writing_by(writer))
        await add_node(cluster, "n1", gpus=1)
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"), 10)


class _Losing(SchedulerExecutor):
    """Plans do not come through to it while it is told so."""

    is_losing = True

    def carry_out(self, plan: Plan) -> None:
        if not self.is_losing:
            super().carry_out(plan)


@virtual
async def test_a_place_that_nobody_carries_out_is_given_back_and_one_that_a_pod_is_bound_to_is_not(
    tmp_path: Path,
) -> None:
    async with small_cluster(tmp_path) as cluster:

        def losing(one: LiveScheduler) -> None:
            one.loop.executors = (_Losing(one.context, one.loop, one.loop.watched),)

        live = start_scheduler(cluster, prepare=losing)
        (executors,) = live.loop.executors
        assert isinstance(executors, _Losing)
        await add_node(cluster, "n1", gpus=1)
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.pass_time(1)
        assert "default/a" in live.loop.cluster.pods
        executors.is_losing = False
        await cluster.until(lambda: is_bound(cluster, "a"), 25)
        rounds = live.loop.rounds
        await cluster.pass_time(120)
        assert live.loop.rounds <= rounds + 1

"""A recorder that is killed at random moments, while pods come, end and are deleted at random: the ledger has what
happened.

What happened is noted by a watch of its own that is never interrupted. Of a pod that ended and was deleted while no
recorder ran, the end is unknown: the ledger may only have an earlier one.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from build.depth import seeds
from build.fleets import FleetRun, machine
from build.live_schedulers import start_scheduler
from build.recorders import RecorderRun
from build.small_clusters import START_S, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Item
from shoal.client.kind import PODS
from shoal.client.refusals import NotFoundError
from shoal.cost.records import FULL_SHARE, Holding, Span
from shoal.embedded.controllers.node_lifecycle.controller import node_lifecycle_controller
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.store.history.history import UsageHistory
from shoal.store.history.memory_tables import MemoryTables

_SECOND = 1000
_STEPS = 60
_STEP_S = 45.0


class Witness:
    """When each pod was bound, and when it ended or vanished."""

    def __init__(self, cluster: SmallCluster) -> None:
        self._cluster = cluster
        self.bound: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self.deleted: dict[str, int] = {}
        """When the object was gone."""
        cluster.informers.of(PODS).on_change(self._changed)

    def _changed(self, before: Item | None, after: Item | None) -> None:
        now = round(self._cluster.clock.seconds() * 1000)
        if after is None:
            if before is not None and before.uid in self.bound:
                self.ended.setdefault(before.uid, now)
                self.deleted[before.uid] = now
            return
        obj = after.obj()
        if obj["spec"].get("nodeName"):
            self.bound.setdefault(after.uid, now)
        if obj["status"].get("phase") in ("Succeeded", "Failed"):
            self.ended.setdefault(after.uid, now)


@pytest.mark.parametrize("seed", seeds(2))
@virtual
async def test_the_ledger_has_what_happened(tmp_path: Path, seed: int) -> None:
    draw, tables, away = Random(seed), MemoryTables(), list[Span]()
    async with small_cluster(tmp_path, [node_lifecycle_controller], seed=seed) as cluster:
        start_scheduler(cluster)
        fleet = FleetRun(cluster, tuple(machine(f"node-{at}", gpus=4) for at in range(2)), FleetSettings())
        witness, recorder = Witness(cluster), RecorderRun(cluster, tables)
        is_on, since = True, 0
        for step in range(_STEPS):
            await _act(cluster, draw, step)
            if is_on and draw.random() < 0.15:
                await recorder.kill()
                is_on, since = False, round(cluster.clock.seconds() * 1000)
            elif not is_on and draw.random() < 0.4:
                recorder, is_on = RecorderRun(cluster, tables), True
                away.append(Span(since, round(cluster.clock.seconds() * 1000)))
            await cluster.pass_time(_STEP_S * draw.random())
        if not is_on:
            recorder = RecorderRun(cluster, tables)
            away.append(Span(since, round(cluster.clock.seconds() * 1000)))
        await cluster.pass_time(60)
        history = UsageHistory(tables)
        start, end = round(START_S * 1000), round(cluster.clock.seconds() * 1000)
        held = history.ledger.holdings(start, end)
        _check_intervals(held, witness, away)
        _check_devices(list(held.values()))
        _check_gaps(history.ledger.gaps(start + 60 * _SECOND, end - 30 * _SECOND), away)
        await recorder.kill()
        await fleet.kill()


async def _act(cluster: SmallCluster, draw: Random, step: int) -> None:
    if draw.random() < 0.7:
        gpus = str(draw.choice((1, 1, 2, 4)))
        container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
        meta = {"name": f"p{step}", "annotations": {"shoal.dev/run-for": f"{draw.randint(20, 400)}s"}}
        spec = {"restartPolicy": "Never", "schedulerName": "shoal", "containers": [container]}
        await cluster.create(PODS, {"metadata": meta, "spec": spec})
    if draw.random() < 0.3:
        names = sorted(one["metadata"]["name"] for one in await cluster.pods())
        if names:
            try:
                await cluster.delete(PODS, draw.choice(names))
            except NotFoundError:
                return


def _check_intervals(held: dict[str, Holding], witness: Witness, away: list[Span]) -> None:
    for uid, bound in witness.bound.items():
        ended = witness.ended.get(uid)
        deleted = witness.deleted.get(uid, 1 << 60)
        gone = [gap for gap in away if gap.start_ms <= (ended or 0) and deleted <= (gap.end_ms or 0)]
        if uid not in held:
            # A pod of which nothing was ever seen.
            assert any(gap.start_ms <= bound + _SECOND for gap in gone), uid
            continue
        one = held[uid]
        assert abs(one.start_ms - bound) <= 2 * _SECOND
        if ended is None:
            assert one.end_ms is None
            continue
        assert one.end_ms is not None
        if gone:
            assert one.start_ms <= one.end_ms <= ended + 2 * _SECOND
        else:
            assert abs(one.end_ms - ended) <= 2 * _SECOND, (one, ended)


def _check_devices(held: list[Holding]) -> None:
    """No moment of a device is held twice."""
    by_device: dict[str, list[tuple[int, int]]] = {}
    for one in held:
        for device in one.devices:
            assert device.share == FULL_SHARE
            by_device.setdefault(device.device, []).append((one.start_ms, one.end_ms or 1 << 60))
    for spans in by_device.values():
        spans.sort()
        for (_, end), (start, _) in pairwise(spans):
            assert end <= start


def _check_gaps(gaps: list[Span], away: list[Span]) -> None:
    """Every gap is a time in which no recorder ran, and longer ones are all there."""
    for gap in gaps:
        assert any(
            one.start_ms - 11 * _SECOND <= gap.start_ms and (gap.end_ms or 0) <= (one.end_ms or 0) + 2 * _SECOND
            for one in away
        )
    for one in away:
        if (one.end_ms or 0) - one.start_ms > 30 * _SECOND:
            assert any(abs((gap.end_ms or 0) - (one.end_ms or 0)) <= 2 * _SECOND for gap in gaps), one
    ordered = sorted(gaps, key=lambda gap: gap.start_ms)
    for first, second in pairwise(ordered):
        assert (first.end_ms or 0) <= second.start_ms

"""A working day of simulated nodes, recorded in virtual time, and what it cost as calculated by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path

from build.fleets import FleetRun, machine
from build.live_schedulers import start_scheduler
from build.recorders import RecorderRun
from build.small_clusters import START_S, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import DEVICE_CLASSES, NAMESPACES, PODS, RESOURCE_CLAIM_TEMPLATES
from shoal.cost.prices.machine_prices import machine_prices
from shoal.cost.prices.price_file import read_price_file
from shoal.cost.records import Holding
from shoal.cost.statement import CostRow, dimension, statement, total, whole_period
from shoal.devices.device_classes import device_classes
from shoal.embedded.controllers.claim_templates.controller import resource_claim_controller
from shoal.embedded.controllers.node_lifecycle.controller import node_lifecycle_controller
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.store.history.memory_tables import MemoryTables
from shoal.units.calendar_windows import HOUR_MS, TimeWindow
from shoal.units.money import cents

START_MS = round(START_S * 1000)
DAY = TimeWindow(START_MS, START_MS + 6 * HOUR_MS)
TYPE = "node.kubernetes.io/instance-type"
PRICES = read_price_file({"machines": [{"instanceType": "dgx", "perHour": "84.20"}]}, "prices.yaml")
"""With 95 % for eight H100, an hour of a GPU costs 84.20 x 0.95 / 8 = 9.99875."""
GPU_HOUR = Decimal("9.99875")
FOREIGN = '\nDCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-of-another-node"} 90\n'


class Day:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.tables = MemoryTables()
        self.run = RecorderRun(cluster, self.tables)

    async def submit(self, name: str, gpus: int, run_for: str, team: str, util: str = "85", **labels: str) -> None:
        container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
        meta: Obj = {
            "name": name,
            "annotations": {"shoal.dev/run-for": run_for, "shoal.dev/gpu-util": util},
            "labels": {"team": team, **labels} if team else labels,
        }
        spec = {"restartPolicy": "Never", "schedulerName": "shoal", "containers": [container]}
        await self.cluster.create(PODS, {"metadata": meta, "spec": spec})

    async def until_hour(self, hour: float) -> None:
        await self.cluster.pass_time(START_S + hour * 3600 - self.cluster.clock.seconds())

    def holdings(self) -> dict[str, Holding]:
        found = self.run.history.records(DAY.start_ms, DAY.end_ms).holdings
        return {one.holder.pod: one for one in found}

    def costs(self, by: str) -> dict[tuple[str, str], CostRow]:
        records = self.run.history.records(DAY.start_ms, DAY.end_ms)
        prices = machine_prices(records.machines, PRICES, date(2026, 1, 1))
        assert not prices.unknown
        rows = statement(records, prices.curves(), whole_period(DAY), dimension(by))
        life = sum(DAY.end_ms - max(one.start_ms, DAY.start_ms) for one in records.machines)
        assert cents(total(rows)) == cents(Decimal("84.20") * life / HOUR_MS)
        return {(row.group, row.kind): row for row in rows}


@asynccontextmanager
async def day(folder: Path, nodes: int) -> AsyncIterator[Day]:
    machines = tuple(machine(f"node-{number}", gpus=8, labels={TYPE: "dgx"}) for number in range(nodes))
    async with small_cluster(folder, [node_lifecycle_controller]) as cluster:
        start_scheduler(cluster)
        found = Day(cluster)
        fleet = FleetRun(cluster, machines, FleetSettings())
        await cluster.pass_time(60)
        try:
            yield found
        finally:
            await found.run.kill()
            await fleet.kill()


def _is(found: Decimal, hours: float) -> bool:
    """Within a minute of GPU time: simulated containers start after seconds."""
    return abs(found - Decimal(str(hours))) < Decimal(8) / 60


@virtual
async def test_a_day_costs_what_was_calculated_by_hand(tmp_path: Path) -> None:
    async with day(tmp_path, 2) as run:
        await run.submit("train", 8, "2h", "red")
        await run.submit("serve", 2, "5h", "green")
        await run.until_hour(1)
        await run.submit("small", 1, "90m", "")
        await run.until_hour(3)
        await run.submit("later", 8, "1h", "red")
        await run.until_hour(6)
        await run.cluster.pass_time(15)
        found = run.costs("team")
        # red: 8 x 2 h and 8 x 1 h; green: 2 x 5 h; the namespace of a pod without a team is its team.
        assert _is(found["red", "allocated-unmeasured"].gpu_hours, 24)
        assert _is(found["green", "allocated-unmeasured"].gpu_hours, 10)
        assert _is(found["default", "allocated-unmeasured"].gpu_hours, 1.5)
        red = found["red", "allocated-unmeasured"]
        assert cents(red.gpu_amount / red.gpu_hours * 24) == cents(24 * GPU_HOUR)
        # 96 GPU-hours in all. The 6 free GPUs beside `serve` are too few for a pod with 8 only while it
        # waits, and it never waits; pods with 2 or 1 are usual as well, so nothing is fragmented.
        others = (row.gpu_hours for (_, kind), row in found.items() if kind != "allocated-unmeasured")
        rest = sum(others, Decimal(0))
        assert _is(rest, 96 - 35.5)
        assert _is(found["", "unallocated"].gpu_hours, 96 - 35.5)


@virtual
async def test_devices_are_those_of_the_kubelet_and_no_two_pods_have_one_at_a_time(tmp_path: Path) -> None:
    async with day(tmp_path, 1) as run:
        for number in range(12):
            await run.submit(f"p{number}", 2, f"{20 + number}m", "red")
        await run.until_hour(3)
        held = run.holdings()
        assert len(held) == 12
        assert all(one.end_ms is not None and len(one.devices) == 2 for one in held.values())
        assert all(one.devices[0].device.startswith("GPU-node-0-") for one in held.values())
        for first in held.values():
            for second in held.values():
                if first is not second and {d.device for d in first.devices} & {d.device for d in second.devices}:
                    assert first.end_ms is not None
                    assert second.end_ms is not None
                    assert first.end_ms <= second.start_ms or second.end_ms <= first.start_ms


@virtual
async def test_a_wait_has_its_reason_and_ends_when_the_pod_is_bound(tmp_path: Path) -> None:
    async with day(tmp_path, 1) as run:
        await run.submit("first", 8, "1h", "red")
        await run.submit("second", 8, "1h", "red")
        await run.until_hour(3)
        waits = {one.holder.pod: one for one in run.run.history.ledger.waits(DAY.start_ms, DAY.end_ms)}
        second, held = waits["second"], run.holdings()["second"]
        assert second.reason == "Unschedulable"
        assert second.gpus == 8
        assert second.end_ms == held.start_ms
        assert abs(held.start_ms - second.start_ms - HOUR_MS) < 60_000


@virtual
async def test_a_recorder_that_was_killed_finds_what_it_missed_and_reports_a_gap(tmp_path: Path) -> None:
    async with day(tmp_path, 2) as run:
        await run.submit("long", 4, "4h", "red")
        await run.submit("ends-unseen", 8, "2h", "red")
        await run.submit("deleted-unseen", 2, "9h", "red")
        await run.until_hour(1)
        await run.run.kill()
        await run.submit("starts-unseen", 1, "3h", "red")
        await run.until_hour(2)
        await run.cluster.delete(PODS, "deleted-unseen")
        await run.until_hour(3)
        run.run = RecorderRun(run.cluster, run.tables)
        await run.until_hour(5)
        held = run.holdings()
        hours = {name: _hours(one) for name, one in held.items()}
        assert hours == {"long": (0, 4), "ends-unseen": (0, 2), "deleted-unseen": (0, 1), "starts-unseen": (1, 4)}
        (gap,) = run.run.history.ledger.gaps(DAY.start_ms + HOUR_MS // 2, DAY.start_ms + 4 * HOUR_MS)
        assert gap.end_ms is not None
        assert (_hour(gap.start_ms), _hour(gap.end_ms)) == (1, 3)


@virtual
async def test_a_preempted_pod_a_deleted_pod_and_a_namespace_with_a_team_are_recorded(tmp_path: Path) -> None:
    async with day(tmp_path, 1) as run:
        await run.cluster.create(NAMESPACES, {"metadata": {"name": "lab", "labels": {"team": "blue"}}})
        await run.submit("gone", 2, "9h", "red", app="x")
        await run.until_hour(1)
        await run.cluster.delete(PODS, "gone")
        await run.until_hour(2)
        gone = run.holdings()["gone"]
        assert _hours(gone) == (0, 1)
        assert dict(gone.holder.labels)["app"] == "x"
        container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        pod = {
            "metadata": {"name": "lab-pod", "namespace": "lab"},
            "spec": {"schedulerName": "shoal", "containers": [container]},
        }
        await run.cluster.create(PODS, pod, "lab")
        await run.until_hour(3)
        assert run.holdings()["lab-pod"].holder.team == "blue"


def _hour(ms: int) -> int:
    return round((ms - START_MS) / HOUR_MS)


def _hours(one: Holding) -> tuple[int, int]:
    assert one.end_ms is not None
    return _hour(one.start_ms), _hour(one.end_ms)


@virtual
async def test_use_is_measured_from_the_exporters_and_pods_that_do_nothing_are_idle(tmp_path: Path) -> None:
    address = "http://127.0.0.1:9400/nodes/node-0/metrics"
    node = machine("node-0", gpus=2, labels={TYPE: "dgx"}, annotations={"shoal.dev/metrics": address})
    async with small_cluster(tmp_path, [node_lifecycle_controller]) as cluster:
        start_scheduler(cluster)
        fleet = FleetRun(cluster, (node,), FleetSettings())

        async def fetch(asked: str) -> str:
            assert asked == address
            view = fleet.fleet.node("node-0")
            assert view is not None
            # Lines about devices that this node does not have count for nothing.
            return view.dcgm() + FOREIGN

        day = Day(cluster)
        await day.run.kill()
        day.run = RecorderRun(cluster, day.tables, fetch)
        await cluster.pass_time(60)
        await day.submit("busy", 1, "55m", "red")
        await day.submit("notebook", 1, "55m", "blue", util="0")
        await day.until_hour(2.1)
        found = day.costs("team")
        assert abs(found["red", "allocated-active"].gpu_hours - Decimal("0.91")) < Decimal("0.1")
        assert abs(found["blue", "allocated-idle"].gpu_hours - Decimal("0.91")) < Decimal("0.1")
        assert "GPU-of-another-node" not in day.run.history.samples.series("util", DAY.start_ms, DAY.end_ms).devices
        assert ("red", "allocated-idle") not in found or found["red", "allocated-idle"].gpu_hours < Decimal("0.1")
        await day.run.kill()
        await fleet.kill()


@virtual
async def test_devices_of_claims_are_held_by_their_pods(tmp_path: Path) -> None:
    node = machine("node-0", gpus=2, labels={TYPE: "dgx"}, gives_by_claims=True)
    async with small_cluster(tmp_path, [node_lifecycle_controller, resource_claim_controller]) as cluster:
        start_scheduler(cluster)
        fleet = FleetRun(cluster, (node,), FleetSettings())
        day = Day(cluster)
        for one in device_classes():
            await cluster.create(DEVICE_CLASSES, one)
        await cluster.pass_time(60)
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
        template = {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
        await cluster.create(RESOURCE_CLAIM_TEMPLATES, template)
        container = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
        claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
        meta = {"name": "claims", "annotations": {"shoal.dev/run-for": "30m"}}
        spec = {"restartPolicy": "Never", "schedulerName": "shoal", "containers": [container], "resourceClaims": claims}
        await cluster.create(PODS, {"metadata": meta, "spec": spec})
        await day.until_hour(1)
        held = day.holdings()["claims"]
        assert [one.device for one in held.devices] in (["GPU-node-0-0"], ["GPU-node-0-1"])
        assert held.end_ms is not None
        assert abs(held.end_ms - held.start_ms - HOUR_MS // 2) < 60_000
        (recorded,) = day.run.history.records(DAY.start_ms, DAY.end_ms).machines
        assert recorded.devices == ("GPU-node-0-0", "GPU-node-0-1")
        await day.run.kill()
        await fleet.kill()


@virtual
async def test_the_next_recorder_keeps_the_prices_of_the_one_before(tmp_path: Path) -> None:
    dearer = read_price_file({"machines": [{"instanceType": "dgx", "perHour": 100}]}, "prices.yaml")
    async with day(tmp_path, 1) as run:
        await run.run.kill()
        tables = MemoryTables()
        for hour, prices in ((0.05, PRICES), (0.1, dearer)):
            run.run = RecorderRun(run.cluster, tables, prices=prices)
            await run.until_hour(hour)
            if prices is PRICES:
                await run.run.kill()
        (machine_row,) = run.run.history.ledger.machines(DAY.start_ms, DAY.end_ms)
        found = [(one.from_ms - START_MS, one.per_hour) for one in machine_row.prices]
        assert found[0] == (machine_row.start_ms - START_MS, Decimal("84.20"))
        assert found[1][1] == 100
        assert HOUR_MS * 0.05 <= found[1][0] <= HOUR_MS * 0.05 + 30_000
        assert len(found) == 2

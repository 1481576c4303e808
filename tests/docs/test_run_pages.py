"""The pages of metrics and permissions say what the code measures and asks for, all of it and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from docs.pages import ROOT
from shoal.client.clock import WallClock
from shoal.controllers.alerting.scraped_metrics import ScrapedMetrics
from shoal.controllers.node_scaling.figures import NodeScalingFigures, NodeScalingObserver
from shoal.data.permissions import BESIDE_LEASE, ELECTION, EVERY_PART, FACTS, IN_NAMESPACE, PARTS, WITH_CLOUD
from shoal.devices.agent_series import ALL as AGENT_SERIES
from shoal.devices.dcgm_fields import FIELDS, XID
from shoal.devices.dcgm_selection import CLOCK_EVENTS, P2P_STATUS, XID_COUNT
from shoal.engine.cluster import Cluster
from shoal.operator.progress.figures import OperatorFigures
from shoal.operator.upgrades.figures import UpgradeFigures
from shoal.telemetry.fleet import measure_fleet
from shoal.telemetry.kai import KaiMetrics
from shoal.telemetry.prices import CostFigures
from shoal.telemetry.queue_levels import CohortFigure, QueueFigure
from shoal.telemetry.queues import QueueMetrics
from shoal.telemetry.unadmitted import UnadmittedFigure
from shoal.telemetry.volcano import VolcanoMetrics
from shoal.wiring.observed_waits import ObservedWaits
from shoal.wiring.telemetry import Measured, Telemetry

PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
OF_GPUS = PAGE[PAGE.index("\n## GPUs of a node\n") : PAGE.index("\n## The process\n")]
METRICS = PAGE.replace(OF_GPUS, "")
PERMISSIONS = (ROOT / "docs" / "permissions.md").read_text(encoding="utf-8")


class _NoQueues:
    def cluster_queues(self) -> Iterator[QueueFigure]:
        return iter(())

    def local_queues(self) -> Iterator[QueueFigure]:
        return iter(())

    def cohorts(self) -> Iterator[CohortFigure]:
        return iter(())

    def unadmitted(self) -> Iterator[UnadmittedFigure]:
        yield from ()

    def above(self, cluster_queue: str) -> Iterator[str]:
        return iter(())


async def _no_text(_: str) -> str:
    return ""


def test_the_page_of_metrics_names_each_once_with_its_type_and_labels() -> None:
    telemetry = Telemetry("1.0", WallClock(), Measured())
    measure_fleet(telemetry.registry, Cluster(), lambda: (), lambda: 0, lambda: 0.0)
    QueueMetrics(telemetry.registry, "standalone").follow(_NoQueues())
    VolcanoMetrics(telemetry.registry)
    telemetry.follow_work_queues(lambda: ())
    telemetry.follow_operator(OperatorFigures())
    telemetry.follow_driver_upgrades(UpgradeFigures)
    telemetry.follow_node_scaling(NodeScalingFigures, NodeScalingObserver())
    telemetry.follow_prices(CostFigures)
    KaiMetrics(telemetry.registry)
    ObservedWaits(telemetry.registry)
    ScrapedMetrics((), _no_text, telemetry.registry)
    there = {one.head.name: one.head for one in telemetry.registry.read()}
    rows = [line.split(" | ") for line in METRICS.splitlines() if re.match(r"\| `(\w+)`", line)]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(there)
    for row in rows:
        for name in re.findall(r"`(\w+)`", row[0]):
            labels = {*there[name].labels} - {"replica_role"}
            assert row[1].strip() == there[name].type
            assert labels <= {*re.findall(r"`(\w+)`", row[2])}, name
            assert bool(labels) == ("`" in row[2])


def test_the_metrics_of_gpus_are_named_once_with_their_type_and_whether_they_are_shown_by_default() -> None:
    fields = {field.counter.field: field for field in FIELDS}
    own = {series.name: series for series in AGENT_SERIES}
    rows = [line.split(" | ") for line in OF_GPUS.splitlines() if re.match(r"\| `(\w+)`", line)]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted([*fields, *own, XID, XID_COUNT, CLOCK_EVENTS, P2P_STATUS])
    for row in rows:
        for name in re.findall(r"`(\w+)`", row[0]):
            if name in fields:
                kind, is_default = fields[name].counter.type, "yes" if fields[name].is_default else "no"
                assert [cell.strip() for cell in row[1:3]] == [kind, is_default], name
            elif name in own:
                assert row[1].strip() == own[name].kind


def _rows(lines: tuple[str, ...]) -> list[str]:
    return [_row(line) for line in lines]


def _row(line: str) -> str:
    verbs, subjects, *more = line.split()
    groups = next((part[1:] for part in more if part.startswith("@")), "")
    names = next((part[1:] for part in more if part.startswith("=")), "")
    resources = ", ".join(f"`{one}`" for one in subjects.split(","))
    if names:
        resources += " named " + ", ".join(f"`{one}`" for one in names.split(","))
    found = ", ".join(f"`{one}`" if one else "core" for one in groups.split(","))
    return f"| {verbs.replace(',', ', ')} | {resources} | {found} |"


@pytest.mark.parametrize("part", ["Every part", *PARTS])
def test_the_page_of_permissions_is_the_table(part: str) -> None:
    section = PERMISSIONS[PERMISSIONS.index(f"\n## {part}\n") + 1 :]
    section = section[: section.find("\n## ")] if "\n## " in section else section
    shown = [line for line in section.splitlines() if re.match(r"\| [a-z]", line) and not line.startswith("| verbs")]
    if part == "Every part":
        assert shown == _rows((*EVERY_PART, *ELECTION))
        return
    lines = PARTS[part] if part != "queues" else PARTS[part][len(FACTS) :]
    assert shown == _rows((*lines, *IN_NAMESPACE.get(part, ()), *BESIDE_LEASE.get(part, ())))


def test_the_page_of_permissions_has_the_lines_of_each_cloud() -> None:
    section = PERMISSIONS[PERMISSIONS.index("\n## Clouds of node-scaling\n") :]
    shown = [line for line in section.splitlines() if line.startswith("| `")]
    wanted = [(cloud, row) for cloud, lines in WITH_CLOUD.items() for row in _rows(lines)]
    assert [line for line in shown if not line.startswith("| `--")] == [f"| `{cloud}` {row}" for cloud, row in wanted]


def test_queues_read_what_the_scheduler_reads() -> None:
    assert PARTS["queues"][: len(FACTS)] == PARTS["scheduler"][: len(FACTS)] == FACTS

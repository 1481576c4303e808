"""Sums GPU time per team, utilization of the fleet and waiting times over a period. Made from scenes."""

from __future__ import annotations

from collections import defaultdict

from rich.table import Table
from rich.text import Text

from shoal.views.dashboard.facts import DashboardFacts
from shoal.views.dashboard.words import plural


class Account:
    """Fed a scene every little while; between two scenes everything is taken to have stayed as it was."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._gpu_seconds: defaultdict[str, float] = defaultdict(float)
        self._fleet_seconds = 0.0
        self._most_waiting = 0
        self._scene: DashboardFacts | None = None

    def add(self, scene: DashboardFacts, seconds: float) -> None:
        """`seconds` have passed since the last scene, and all that time it was as that one had it."""
        before, self._scene = self._scene, scene
        self._seconds += seconds
        self._most_waiting = max(self._most_waiting, scene.all_waiting)
        if before is None:
            return
        self._fleet_seconds += seconds * before.fleet.gpus
        for owner, gpus in before.fleet.sums.items():
            self._gpu_seconds[owner] += gpus * seconds

    def table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
        table.add_column("team")
        table.add_column("GPU minutes", justify="right")
        table.add_column("share of the fleet", justify="right")
        for owner, seconds in sorted(self._gpu_seconds.items(), key=lambda one: (-one[1], one[0])):
            share = 100 * seconds / self._fleet_seconds if self._fleet_seconds else 0.0
            table.add_row(owner, f"{seconds / 60:,.1f}", f"{share:.1f} %")
        return table

    def words(self) -> str:
        scene = self._scene
        if scene is None:
            return "nothing happened"
        share = 100 * sum(self._gpu_seconds.values()) / self._fleet_seconds if self._fleet_seconds else 0.0
        return (
            f"In {self._seconds:.0f} s {plural(len(scene.tiles), 'node')} with {plural(scene.fleet.gpus, 'GPU')} "
            f"were held to {share:.0f} %: {scene.done:,} pods done, {scene.failed:,} failed, "
            f"{scene.running:,} still running, {scene.all_waiting:,} waiting, {self._most_waiting:,} at most."
        )


def line(scene: DashboardFacts) -> Text:
    """One moment where there is no terminal to draw on."""
    by_team = scene.fleet.sums
    teams = "  ".join(f"{owner} {by_team[owner]:.4g}" for owner in sorted(by_team))
    failed = f"  {scene.failed} failed" if scene.failed else ""
    counts = f"{scene.running} running  {scene.all_waiting} waiting  {scene.done} done{failed}"
    return Text(f"{scene.clock}  {sum(by_team.values()):.4g}/{scene.fleet.gpus} GPUs held  {counts}  {teams}".rstrip())

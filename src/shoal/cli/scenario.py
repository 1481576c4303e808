"""Fleet, pods and arrivals as the options of a command name them: files, a recorded order, or made up from a seed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shoal.sim.arrivals import Arrivals
from shoal.sim.synthetic import make_fleet, make_pods
from shoal.sim.traces.openb import TraceNode, TracePod, read_nodes, read_pods, unknown_models
from shoal.sim.traces.orders import read_order
from shoal.sim.workload import check_load, draw_arrivals, total_gpu_milli
from shoal.units.errors import UserError, Where

SYNTHETIC_NODES = 1000


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a run needs but its policy."""

    nodes: Sequence[TraceNode]
    pods: Sequence[TracePod]
    arrivals: Arrivals
    seed: int

    @property
    def words(self) -> str:
        """One line for titles: how large, how many, which draw."""
        gpus = total_gpu_milli(self.nodes) // 1000
        return f"{len(self.nodes):,} nodes, {gpus:,} GPUs, {self._pods()} arriving one by one, seed {self.seed}"

    def _pods(self) -> str:
        """A pod that arrives again is a clone."""
        arriving = len(self.arrivals.pod_rows)
        pods = len(set(self.arrivals.pod_rows.tolist()))
        clones = f" and {arriving - pods:,} clones" if arriving > pods else ""
        return f"{pods:,} pods{clones}"


def load_scenario(
    nodes_file: Path | None, pods_file: Path | None, order_file: Path | None, load: float, seed: int
) -> Scenario:
    """From two files, or synthetic when neither is given; a recorded order needs the files it was recorded for."""
    check_load(load)
    if nodes_file is None and pods_file is None:
        if order_file is not None:
            raise UserError("--order counts rows of the files given by --nodes and --pods", fix="give both")
        return synthetic_scenario(SYNTHETIC_NODES, load, seed)
    if nodes_file is None or pods_file is None:
        given, missing = ("--nodes", "--pods") if pods_file is None else ("--pods", "--nodes")
        raise UserError(f"{given} is given without {missing}", fix="give both, or neither for a synthetic fleet")
    nodes, pods = read_nodes(nodes_file), read_pods(pods_file)
    if not any(node.gpu for node in nodes):
        raise UserError("no node has a GPU", where=Where(file=str(nodes_file), path="gpu"))
    if not any(pod.num_gpu for pod in pods):
        raise UserError("no pod asks for a GPU", where=Where(file=str(pods_file), path="num_gpu"))
    _warn_of_unknown_models(pods_file, nodes, pods)
    if order_file is None:
        return Scenario(nodes, pods, draw_arrivals(pods, nodes, load, seed), seed)
    return Scenario(nodes, pods, read_order(order_file, seed, pods, nodes), seed)


def synthetic_scenario(node_count: int, load: float, seed: int) -> Scenario:
    nodes = make_fleet(node_count, seed)
    pods = make_pods(nodes, seed)
    return Scenario(nodes, pods, draw_arrivals(pods, nodes, load, seed), seed)


def _warn_of_unknown_models(pods_file: Path, nodes: Sequence[TraceNode], pods: Sequence[TracePod]) -> None:
    unknown = unknown_models(nodes, pods)
    if unknown:
        names = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        sys.stderr.write(f"shoal: warning: {pods_file}: gpu_spec: the fleet has no {names}: this matches nothing\n")

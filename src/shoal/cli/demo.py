"""`shoal demo`: watch a synthetic fleet being packed, then see how other policies do with the same pods.

On a terminal the packing is slowed down to a few seconds; the placements a second it shows are the engine's own.
Elsewhere the same figures come as plain lines at once.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.formats import FOR_PROGRAMS, TableOutput, checked, write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from shoal.cli.policy_comparison import Result
    from shoal.cli.scenario import Scenario
    from shoal.views.fleet_tiles import NodeModel

_TABLE = "table"
_HERO = "Shoal"
_RIVALS = ("FGD", "BestFit", "Random")
_LOAD = 1.3
_FRAMES = 140
_FRAME_S = 0.05
_MAX_NODES = 2000


def demo(
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Draws the fleet, the pods and their order.")] = 42,
    out: Annotated[Path, typer.Option(metavar="OUT.svg", help="The file for the picture.")] = Path("shoal-demo.svg"),
    nodes: Annotated[int, typer.Option(min=5, max=_MAX_NODES, help="Size of the fleet.")] = 120,
    output: TableOutput = _TABLE,
) -> None:
    """Watch a GPU fleet being packed in the terminal; leaves a picture comparing policies."""
    checked(output, (_TABLE, *FOR_PROGRAMS))
    from shoal.cli.output_file import OutFile

    target = OutFile(out, ".svg")

    import threading

    from rich.console import Console

    from shoal.cli.pack import document_of
    from shoal.cli.policy_comparison import compare_policies, picture
    from shoal.cli.scenario import synthetic_scenario
    from shoal.sim.axis import MARKS
    from shoal.views.packing_table import packing_table

    console = Console(highlight=False)
    scenario = synthetic_scenario(nodes, _LOAD, seed)
    if output != _TABLE:
        results = compare_policies(scenario, (_HERO, *_RIVALS))
        target.write(picture(scenario, results))
        write([document_of(result, scenario) for result in results], output)
        return
    if console.is_terminal and not console.is_dumb_terminal:
        results = [watch(console, scenario, threading.Event().wait), *compare_policies(scenario, _RIVALS)]
    else:
        console.print(scenario.words, soft_wrap=True)
        results = compare_policies(scenario, (_HERO, *_RIVALS))
    target.write(picture(scenario, results))
    console.print()
    console.print(packing_table([result.row for result in results], MARKS))
    console.print(f"\n{_verdict(scenario, results)}", soft_wrap=True)
    console.print(f"picture: {out.resolve()}", markup=False, soft_wrap=True)


def _verdict(scenario: Scenario, results: Sequence[Result]) -> str:
    """In GPUs, since percentages of a fleet say little about its cost."""
    gpus = sum(node.gpu for node in scenario.nodes)
    busy = [f"{each.policy} {gpus * each.curves.alloc[max(each.curves.alloc)] / 100:.0f}" for each in results]
    return f"GPUs at work in the end, of {gpus:,}: {', '.join(busy)}"


def watch(console: Console, scenario: Scenario, wait: Callable[[float], object]) -> Result:
    """The hero's run, drawn frame by frame; only the time inside the engine counts as its time."""
    from time import perf_counter

    from rich.live import Live

    from shoal.cli.policy_comparison import finish, new_run
    from shoal.sim.replay import replay
    from shoal.views.packing_frame import PackingState, draw_frame

    kinds = _kinds(scenario)
    rows = scenario.arrivals.pod_rows.tolist()
    run = new_run(scenario, _HERO)
    stride = math.ceil(len(rows) / _FRAMES)
    seconds = 0.0
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for start in range(0, len(rows), stride):
            began = perf_counter()
            replay(run, rows[start : start + stride])
            packed = perf_counter()
            seconds += packed - began
            total = run.total_gpu_milli / 100
            moment = PackingState(
                title=f"{_HERO} packs {scenario.words}",
                pods=len(run.arrived_milli),
                of_pods=len(rows),
                placed=run.placed,
                refused=run.refused,
                arrived=run.arrived_milli[-1] / total,
                allocated=run.allocated_milli[-1] / total,
                fragmented=run.frag_milli[-1] / total,
                per_second=len(run.arrived_milli) / seconds,
            )
            live.update(draw_frame(moment, kinds, run.gpu_free, console.width, console.height - 1), refresh=True)
            wait(max(0.0, _FRAME_S - (perf_counter() - began)))
    return finish(run, _HERO, seconds)


def _kinds(scenario: Scenario) -> list[NodeModel]:
    """Largest nodes first; within a kind in the order in which ties prefer them, so that filling runs left to right."""
    from shoal.views.fleet_tiles import NodeModel

    nodes = scenario.nodes
    by_name = sorted(range(len(nodes)), key=lambda row: nodes[row].name)
    ranks = scenario.arrivals.ranks.tolist()
    members: dict[tuple[int, str], list[int]] = {}
    for _, row in sorted(zip(ranks, by_name, strict=True)):
        if nodes[row].gpu:
            members.setdefault((nodes[row].gpu, nodes[row].model), []).append(row)
    return [NodeModel(model, gpus, rows) for (gpus, model), rows in sorted(members.items(), reverse=True)]

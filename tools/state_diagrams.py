"""Writes docs/states.md: the tables of legal state changes, drawn as Mermaid state diagrams.

`python -m tools.state_diagrams` writes the page; a test compares the page with the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from shoal.controllers.volcano.job_phases import ACTION_TRANSITIONS, POD_TRANSITIONS
from shoal.engine.pods import TRANSITIONS
from shoal.engine.queues.entry import STATES_AFTER
from shoal.operator.upgrades.states import AFTER_ACTIONS
from shoal.operator.upgrades.states import TRANSITIONS as UPGRADE_TRANSITIONS

PAGE = Path(__file__).parents[1] / "docs" / "states.md"
_PODS = """\
# State machines

`python -m tools.state_diagrams` writes this page from the tables in the code. Tests check that the code makes the
listed changes and no others.

## Pods in the engine

The states are defined in `engine/pods.py` (`PodState`, `TRANSITIONS`). The diagram begins and ends where the engine
does not know the pod.
"""
_HEADS = """
## Heads of cluster queues

A cycle of the queues decides an outcome for each head (`HeadOutcome` in `engine/queues/entry.py`). `STATES_AFTER` lists
the states that the workload can have afterwards. `active` and `inadmissible` workloads are pending; a workload with the
state `none` has its quota reserved. An inadmissible head remains active if its queue has the strategy StrictFIFO, or if
it has flavors left to try.

| outcome | states of the workload |
|---|---|
"""
_JOBS = """
## Jobs of Volcano

The phases are defined in `controllers/volcano/job_phases.py`. A transition with a label is caused by that action
(`ACTION_TRANSITIONS`). The others follow from the pods of the job (`POD_TRANSITIONS`).
"""
_UPGRADES = """
## Driver upgrades

The states of a node are defined in `operator/upgrades/states.py`. A pass over all nodes makes the transitions without a
label (`TRANSITIONS`); [driver upgrades](driver-upgrades.md) describes when. The transitions with a label follow from
the end of an eviction or a drain (`AFTER_ACTIONS`). The diagram has `_` in place of `-`.
"""


def page() -> str:
    """The text of docs/states.md."""
    pods = ((_name(before), _name(after), "") for before, targets in TRANSITIONS.items() for after in targets)
    heads = (f"| {outcome} | {', '.join(sorted(states))} |\n" for outcome, states in STATES_AFTER.items())
    parts = (_PODS, diagram(pods), _HEADS, *heads, _JOBS, diagram(_job_phases()))
    return "".join((*parts, _UPGRADES, diagram(_upgrades())))


def diagram(transitions: Iterable[tuple[str, str, str]]) -> str:
    """A Mermaid state diagram of transitions (from, to, label)."""
    lines = sorted(f"    {before} --> {after}{f': {label}' if label else ''}\n" for before, after, label in transitions)
    return "".join(("\n```mermaid\nstateDiagram-v2\n", *lines, "```\n"))


def _name(state: str | None) -> str:
    return "[*]" if state is None else str(state)


def _job_phases() -> Iterator[tuple[str, str, str]]:
    yield "[*]", "Pending", ""
    for (before, action), after in ACTION_TRANSITIONS.items():
        yield before, after, action
    for before, targets in POD_TRANSITIONS.items():
        for after in targets:
            yield before, after, ""


def _upgrades() -> Iterator[tuple[str, str, str]]:
    for table, label in ((UPGRADE_TRANSITIONS, ""), (AFTER_ACTIONS, "ended")):
        for before, states in table.items():
            yield from ((_drawn(before), _drawn(after), label) for after in states)


def _drawn(state: str) -> str:
    """Mermaid reads a dash as part of an arrow."""
    return state.replace("-", "_") or "[*]"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Changes of nodes: a cordon that is lifted, an unhealthy GPU that is repaired, another MIG layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from shlex import join as joined
from shlex import quote as quoted

import numpy as np
from msgspec import structs

from shoal.api.taints import UNSCHEDULABLE, Taint
from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine.asks import counted
from shoal.engine.device_demand import WholeGpus
from shoal.engine.device_notation.gpu_health import GpuHealth, gpu_health
from shoal.engine.events import NodeFacts
from shoal.engine.evidence import feasible_rows
from shoal.engine.repelling_taints import tolerating
from shoal.sim.remedies.candidates import Candidate, NodeCandidates, WaitingSubject
from shoal.sim.remedies.objects import Objects
from shoal.sim.remedies.trial import RemedyTrial
from shoal.store.mig_relabelling import MIG_CONFIG, layouts_for, relabelled
from shoal.views.remedies import Remedy, mig_words, repair_words, uncordon_words
from shoal.views.remedy_commands import delete_commands

MOST_NODES = 64
_MOST_LAYOUTS = 3


def uncordon(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Iterator[NodeCandidates]:
    cordoned = [name for name, node in trial.nodes.items() if node.unschedulable]
    names = admitted(trial, subject, cordoned, (UNSCHEDULABLE,))[:MOST_NODES]
    if names:

        def apply(stack: ExitStack, name: str) -> None:
            trial.change_node(stack, name, _uncordoned)

        def remedy(chosen: tuple[str, ...]) -> Remedy:
            commands = tuple(f"kubectl uncordon {quoted(name)}" for name in chosen) if objects.is_living else ()
            return Remedy(uncordon_words(chosen), commands)

        yield NodeCandidates(names, apply, remedy)


def repair(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Iterator[NodeCandidates]:
    found = {
        name: health
        for name, node in objects.nodes.items()
        if name in trial.nodes and (health := gpu_health(node)) is not None and health.total
    }
    names = admitted(trial, subject, found)[:MOST_NODES]
    if names:

        def apply(stack: ExitStack, name: str) -> None:
            trial.change_node(stack, name, lambda node: _repaired(node, found[name]))

        def remedy(chosen: tuple[str, ...]) -> Remedy:
            commands = tuple(command for name in chosen for command in _heal(name, found[name]))
            return Remedy(repair_words([(name, found[name]) for name in chosen]), commands)

        yield NodeCandidates(names, apply, remedy)


def mig_layouts(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Iterator[NodeCandidates]:
    """Nodes without pods on their GPUs, by layout."""
    for layout, names in _by_layout(trial, subject, objects).items():
        idle = tuple(name for name in names if not _holders(trial, name))[:MOST_NODES]
        if idle:
            yield _relabel(trial, objects, layout, idle)


def disturbing_mig_layouts(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Iterator[Candidate]:
    """The node with fewest pods on its GPUs; these have to end first."""
    for layout, names in _by_layout(trial, subject, objects).items():
        own = objects.siblings(subject.pods[0])
        busy = [(name, holders) for name in names if (holders := _holders(trial, name)) and not own & {*holders}]
        if busy:
            name, holders = min(busy, key=lambda each: len(each[1]))
            relabel = _relabel(trial, objects, layout, (name,)).of(1)

            def apply(stack: ExitStack, relabel: Candidate = relabel, holders: tuple[str, ...] = holders) -> None:
                trial.end_pods(stack, holders)
                relabel.apply(stack)

            commands = (*delete_commands(holders), *relabel.remedy.commands) if objects.is_living else ()
            yield Candidate(Remedy(mig_words(layout, (name,), holders), commands), apply, nodes=(name,))


def _relabel(trial: RemedyTrial, objects: Objects, layout: str, names: tuple[str, ...]) -> NodeCandidates:
    def apply(stack: ExitStack, name: str) -> None:
        trial.change_node(stack, name, lambda node: relabelled(node, objects.nodes[name], layout))

    def remedy(chosen: tuple[str, ...]) -> Remedy:
        command = f"kubectl label node {joined((*chosen, f'{MIG_CONFIG}={layout}'))} --overwrite"
        return Remedy(mig_words(layout, chosen, ()), (command,) if objects.is_living else ())

    return NodeCandidates(names, apply, remedy)


def _by_layout(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Mapping[str, list[str]]:
    ask = trial.cluster.pending[subject.pods[0]].charge.ask
    profiles = tuple(
        (name.removeprefix(RESOURCE_PREFIX), amount)
        for name, amount in sorted(counted(ask).items())
        if name.startswith(RESOURCE_PREFIX)
    )
    whole = ask.devices.count if isinstance(ask.devices, WholeGpus) else 0
    found: dict[str, list[str]] = {}
    if not profiles and not whole:
        return found
    for name in admitted(trial, subject, objects.nodes):
        for layout in layouts_for(objects.nodes[name], profiles, whole):
            found.setdefault(layout, []).append(name)
    first = sorted(found, key=lambda layout: (-len(found[layout]), layout))
    return {layout: found[layout] for layout in first[:_MOST_LAYOUTS]}


def admitted(
    trial: RemedyTrial, subject: WaitingSubject, names: Iterable[str], ignored: tuple[Taint, ...] = ()
) -> tuple[str, ...]:
    """Nodes that the rules about names, labels and taints let through; a change of others does not help. `ignored`:
    taints that the change removes, the one of a cordon for example."""
    cluster = trial.cluster
    rows = {cluster.row_of[name]: name for name in names if name in trial.nodes and name in cluster.row_of}
    ask = tolerating(cluster.pending[subject.pods[0]].charge.ask, ignored)
    left = feasible_rows(cluster, ask, np.array(sorted(rows), np.int64)).tolist() if rows else []
    return tuple(rows[row] for row in left)


def _holders(trial: RemedyTrial, name: str) -> tuple[str, ...]:
    """Pods that hold a part of the node's GPUs."""
    cluster = trial.cluster
    found = []
    for pod in cluster.pods_on(cluster.row_of[name]):
        ask = cluster.pods[pod].ask
        if ask.devices is not None or any(each.startswith(RESOURCE_PREFIX) for each, _ in ask.requests):
            found.append(pod)
    return tuple(sorted(found))


def _uncordoned(node: NodeFacts) -> NodeFacts:
    """The node lifecycle controller removes the taint of a cordon together with the cordon."""
    taints = tuple(taint for taint in node.taints if taint.key != UNSCHEDULABLE.key)
    return structs.replace(node, unschedulable=False, taints=taints)


def _repaired(node: NodeFacts, health: GpuHealth) -> NodeFacts:
    allocatable = {**node.allocatable, **health.instances}
    gpus = max(node.gpus, health.gpus)
    return structs.replace(node, allocatable=allocatable, gpus=gpus, layout=structs.replace(node.layout, broken=()))


def _heal(name: str, health: GpuHealth) -> Iterator[str]:
    """Only simulated GPUs have a command for it."""
    if health.is_simulated:
        yield from (f"shoal cluster heal {name} --gpu {index}" for index in health.xids)

"""Reads the use of GPUs and the list of gangs from the facts, without any decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping

from msgspec import structs

from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.selector_text import parse_label_selector
from shoal.cli.held_requests import HeldRequests
from shoal.cli.listed_pods import admitted_pods
from shoal.cli.manifests import Loaded
from shoal.cli.object_source import Source
from shoal.sim.queue_outlook import outlook
from shoal.store.held_pods import HeldPod, pods_of
from shoal.store.inventory import Inventory
from shoal.store.queues.members import Members
from shoal.views.decision import Reason
from shoal.views.gang_list import GangLine, gang_order, gangs_of
from shoal.views.top import HeldBack, Top, top_of

_SEED = 42
_LET_IN = Reason("", "", "")


def top_of_source(source: Source, selector: str = "") -> Top:
    """`selector`: the labels of the nodes that are shown."""
    loaded = source.taken()
    inventory = Inventory(source.documents)
    members = Members(inventory)

    def owner_of(pod: str) -> str:
        """The highest of its controllers, or the pod itself."""
        placed = members.pods.get(pod)
        owners = [] if placed is None else list(members.owners(placed.value))
        return f"{owners[-1][0]}/{owners[-1][2]}" if owners else pod

    nodes = [placed.value for placed in inventory.of(Node)]
    if selector:
        chosen = parse_label_selector(selector)
        nodes = [node for node in nodes if chosen.matches(node.metadata.labels)]
    queued = loaded.queued
    held = set[str]() if queued is None else set(queued.kueue.queues.held)
    workloads = 0 if queued is None else sum(1 for each in queued.workloads if each.key not in held)
    gated = pods_of(loaded.manifests.gated, members.pods)
    gangs = len(loaded.manifests.gated) - len(gated)
    there = {placed.value.metadata.key for placed in inventory.of(Pod)}
    waiting = [*loaded.cluster.pending.in_order(), *gated]
    # The pods that manifests describe are all to be created.
    absent = set[str]() if source.access is None else {pod for pod in waiting if pod not in there}
    gated = [pod for pod in gated if pod not in absent]
    admitted = [charge.gpu_milli for _, charge, _ in admitted_pods(loaded, there)]
    asked = HeldRequests(loaded).gpu_milli(gated) + sum(admitted)
    held_back = HeldBack(len(gated) + len(admitted), asked, workloads, gangs, absent)
    return top_of(loaded.cluster, nodes, owner_of, held_back)


def gangs_of_source(source: Source) -> list[GangLine]:
    loaded = source.taken()
    lines = gangs_of(loaded.placement, _SEED)
    words = _queued(loaded)
    pods = {placed.value.metadata.key for placed in Inventory(source.documents).of(Pod)}
    held, requests = _held_pods(loaded, pods), HeldRequests(loaded)
    existing = (
        _existing(line, sum(pod in pods for pod in held[line.gang]), requests.gpu_milli(held[line.gang]))
        for line in lines
    )
    return sorted((_with_queue(line, words.get(line.gang)) for line in existing), key=gang_order)


def _held_pods(loaded: Loaded, pods: Container[str]) -> Mapping[str, list[str]]:
    """By gang: its pods that a queue keeps back, which the facts do not have; also those that a queued job will
    create."""
    gated = loaded.manifests.gated
    found = defaultdict[str, list[str]](list)
    for key in pods_of(gated, pods):
        hold = gated[key]
        if isinstance(hold, HeldPod) and hold.group:
            found[hold.group].append(key)
    if loaded.queued is not None:
        for facts in loaded.queued.workloads:
            for group in loaded.queued.pods.groups_of(facts.key):
                found[group] = list(loaded.queued.pods.each_of(facts.key))
    return found


def _existing(line: GangLine, held: int, gpu_milli: int) -> GangLine:
    """With the pods that a queue keeps back, or that have no node though their workload is admitted, or a message that
    it has none. `gpu_milli`: what all these pods ask for, also those to be created."""
    if line.state != "empty":
        return line
    message = "" if held else f"0 of {line.needs:,} pods exist"
    return structs.replace(line, waiting=held, gpus=round(gpu_milli / 1000, 3), message=message)


def _with_queue(line: GangLine, word: tuple[str, Reason] | None) -> GangLine:
    if word is None:
        return line
    queue, reason = word
    if line.state != "empty" or not reason.code:
        is_let_in = line.state == "empty" and line.waiting > 0
        return structs.replace(line, queue=queue, state="waits" if is_let_in else line.state)
    message = f"{line.message}; {reason.message}" if line.message else reason.message
    return structs.replace(line, state="queued", queue=queue, code=reason.code, message=message)


def _queued(loaded: Loaded) -> dict[str, tuple[str, Reason]]:
    """By gang: its queue, and why that keeps its pods back; a reason without a code where it does not."""
    found = {
        hold.group: (hold.queue_name, Reason(hold.code, hold.message, hold.help))
        for hold in loaded.manifests.gated.values()
        if isinstance(hold, HeldPod) and hold.group
    }
    queued = loaded.queued
    if queued is None:
        return found
    reasons = outlook(queued.kueue, loaded.now_s)
    for facts in queued.workloads:
        for group in queued.pods.groups_of(facts.key):
            found[group] = facts.queue, reasons.get(facts.key, _LET_IN)
    return found

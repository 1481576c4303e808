"""Builds the rows of `shoal get pods` from the facts; nothing is decided."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from itertools import chain

from msgspec import structs

from shoal.api.pod import Pod
from shoal.cli.deleted_nodes import on_lost_nodes
from shoal.cli.held_requests import HeldRequests
from shoal.cli.manifests import Loaded
from shoal.cli.object_source import Source
from shoal.cli.scheduler_names import is_unknown_scheduler, unknown_scheduler_words
from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
from shoal.engine.evidence import Evidences
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.pods import PodAllocation
from shoal.engine.reasons import Evidence
from shoal.sim.device_names import device_names
from shoal.sim.queue_outlook import outlook
from shoal.store.held_pods import HeldPod, pods_of
from shoal.store.replicas import KUEUE_QUEUE_LABEL
from shoal.views.decision import Reason
from shoal.views.pod_list import PodLine
from shoal.views.why import why

_MOST_TRIED = 200
"""Pods whose reason is looked for among the nodes; equal pods are looked at once."""
_ORDER = ("waits", "queued", "nominated", "ending", "starts", "runs", "failed", "succeeded")
_ENDED = {"Succeeded": "succeeded", "Failed": "failed"}


def pods_of_source(source: Source) -> list[PodLine]:
    """Pods that wait come first, pods that have ended last. Of a cluster only pods with an object are listed, of
    manifests also those that their jobs would make."""
    loaded = source.taken()
    pods = {each.value.metadata.key: each.value for each in source.documents if isinstance(each.value, Pod)}
    lines = {line.pod: line for line in (*_placed(loaded, pods), *_waiting(loaded, pods))}
    reasons, lost, requests = _reasons(loaded), on_lost_nodes(source.documents), HeldRequests(loaded)
    for key in dict.fromkeys((*pods_of(loaded.manifests.gated, pods), *pods)):
        if key not in lines:
            line = _held(loaded, key, pods.get(key), reasons, lost)
            lines[key] = _requesting(line, requests.charge(key)) if line.state == "queued" else line
    if source.access is not None:
        lines = {key: line for key, line in lines.items() if key in pods}
    return sorted(lines.values(), key=lambda line: (_ORDER.index(line.state), line.pod))


def _placed(loaded: Loaded, pods: dict[str, Pod]) -> Iterator[PodLine]:
    cluster = loaded.cluster
    node_of = {row: name for name, row in cluster.row_of.items()}
    for key, allocation in cluster.pods.items():
        node = node_of[allocation.row]
        pod = pods.get(key)
        devices = [] if allocation.guessed else device_names(cluster, allocation.ask, node, allocation.grant)
        queue = _queue(pod, allocation.who.queue)
        line = _line(key, _state(allocation, pod), allocation.charge, node, queue, Reason("", "", ""))
        yield PodLine(line.pod, line.state, line.gpus, line.instances, node, [*devices], queue, "", "")


def _state(allocation: PodAllocation, pod: Pod | None) -> str:
    if allocation.is_nominated:
        return "nominated"
    if allocation.is_terminating or (pod is not None and pod.is_terminating()):
        return "ending"
    return "starts" if pod is not None and pod.status.phase == "Pending" else "runs"


def _waiting(loaded: Loaded, pods: dict[str, Pod]) -> Iterator[PodLine]:
    cluster = loaded.cluster
    evidences = Evidences(cluster)
    pending = ((key, cluster.pending[key]) for key in cluster.pending.in_order())
    waiting = ((key, each.charge, each.who) for key, each in pending)
    for tried, (key, charge, who) in enumerate(chain(waiting, admitted_pods(loaded, pods))):
        reason = Reason("", "", "")
        if tried < _MOST_TRIED:
            reason = _reason(evidences.of(charge.ask, who), who.group)
            pod = pods.get(key)
            if not reason.code and pod is not None and pod.status.phase and is_unknown_scheduler(pod, pods.values()):
                reason = Reason("", unknown_scheduler_words(pod), "")
        yield _line(key, "waits", charge, "", _queue(pods.get(key), who.queue), reason)


def admitted_pods(loaded: Loaded, pods: Container[str]) -> Iterator[tuple[str, Charge, PodIdentity]]:
    """Pods without a node whose workload is admitted: no queue keeps them back any more."""
    if loaded.queued is None:
        return
    for held in loaded.queued.kueue.queues.held.values():
        if held.facts.admitted and not held.evicted:
            for each in loaded.queued.pods.pods_of(held.facts, held.admission):
                if each.key in pods and each.key not in loaded.manifests.gated:
                    yield each.key, loaded.cluster.charge(each.ask), each.who


def _reason(found: Evidence, gang: str) -> Reason:
    if found.fitting:
        return Reason("", f"it waits with its gang {gang}" if gang else "it fits by now", "")
    return Reason(str(found.code), why(found), "")


def _reasons(loaded: Loaded) -> dict[str, Reason]:
    """By workload: why its queue keeps it back."""
    return {} if loaded.queued is None else outlook(loaded.queued.kueue, loaded.now_s)


def _held(loaded: Loaded, key: str, pod: Pod | None, reasons: dict[str, Reason], lost: Mapping[str, str]) -> PodLine:
    """A pod that no scheduler may place yet, that has ended, or whose node is not known."""
    hold = loaded.manifests.gated.get(key)
    queue = _queue(pod, hold.queue_name if isinstance(hold, HeldPod) else "")
    if pod is not None and (pod.is_finished() or pod.spec.node_name):
        state = _ENDED.get(pod.status.phase, "waits" if pod.status.phase == "Pending" else "runs")
        return _line(
            key, state, None, pod.spec.node_name, queue, Reason("", pod.status.reason or lost.get(key, ""), "")
        )
    workload = None if loaded.queued is None else loaded.queued.pods.workload_of(key)
    if workload in reasons:
        reason = reasons[workload]
    elif isinstance(hold, HeldPod):
        reason = Reason(hold.code, hold.message, hold.help)
    else:
        reason = Reason("SchedulingGated", f"gates: {', '.join(hold)}", "") if hold else Reason("", "", "")
    return _line(key, "queued", None, "", queue, reason)


def _requesting(line: PodLine, charge: Charge | None) -> PodLine:
    return line if charge is None else structs.replace(line, gpus=_gpus(charge), instances=_instances(charge.ask))


def _line(key: str, state: str, charge: Charge | None, node: str, queue: str, reason: Reason) -> PodLine:
    gpus = 0.0 if charge is None else _gpus(charge)
    instances = {} if charge is None else _instances(charge.ask)
    return PodLine(key, state, gpus, instances, node, [], queue, reason.code, reason.message)


def _gpus(charge: Charge) -> float:
    return round(charge.gpu_milli / 1000, 3)


def _instances(ask: Ask) -> dict[str, int]:
    return {
        name.removeprefix(RESOURCE_PREFIX): amount for name, amount in ask.requests if name.startswith(RESOURCE_PREFIX)
    }


def _queue(pod: Pod | None, known: str) -> str:
    label = "" if pod is None else pod.metadata.labels.get(KUEUE_QUEUE_LABEL, "")
    return label or known

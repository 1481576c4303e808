"""Describes the observed state of live objects: the node of a pod, the condition that its scheduler wrote last, the
pods of a job.

What decides nothing stays out of `sim/explanation.py`, which tells what would be decided.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from shoal.api.conditions import is_condition_true
from shoal.api.decode import Document, Unknown
from shoal.api.groups.kai import KaiPodGroup
from shoal.api.groups.volcano import VolcanoPodGroup
from shoal.api.kueue import ResourceFlavor, Workload
from shoal.api.meta import ObjectMeta
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.cli.scheduler_names import is_unknown_scheduler, near_scheduler, unknown_scheduler_words
from shoal.engine.gang_members import Gang
from shoal.store.pod_makers import GANG
from shoal.store.replicas import KUEUE_QUEUE_LABEL
from shoal.units.errors import one_line
from shoal.views.enumeration import few
from shoal.views.explanation import Explanation
from shoal.views.why import NEAREST_BEGINNINGS

_MOST_PODS = 4
_MOST_WORDS = 3
_TOLD = ("QuotaReserved", "Admitted", "Evicted", "Preempted", "PodsReady", "Requeued")
_STOPPED = ("Evicted", "Preempted")
_HEAD = ("asks", "conditions", "gang", "gates", "queue", "needs")
"""Chapters that come before what others say of it."""
_ONCE_PREEMPTED = "once pods of lower priority are preempted"
_SHOAL = "shoal"
_ASSUMED = (
    "no Lease of kube-system has the settings of shoal run, so the defaults are assumed: policy Shoal, preemption by "
    "priority, no moves"
)
_SENTENCES = re.compile(r"(?<=[.?]) (?=[A-Z])")
NOT_CONSIDERED = "it has not been considered yet; are the queue controllers running?"


def tell_as_living(explanation: Explanation, pod: Pod, others: Collection[Pod]) -> None:
    """What the facts would come to is not what has happened. `others`: all pods of the cluster; those that are ending
    still hold what they have."""
    outcome, node = explanation.outcome, pod.spec.node_name
    ends = outcome.partition("is preempted by ")[2] or outcome.rpartition(" for ")[2]
    if not node:
        if outcome.startswith("runs on "):
            where = outcome.removeprefix("runs on ")
            ending = [each for each in others if _is_ending_on(each, where.partition(",")[0])]
            explanation.outcome = f"waits: by now it fits, on {where}"
            if is_unknown_scheduler(pod, others):
                explanation.outcome = f"waits: {unknown_scheduler_words(pod)}; it would fit on {where}"
                return
            if any(heading == "preempted" for heading, _ in explanation.chapters):
                _tell_preemption(explanation, where)
            elif after := _taken_after(explanation):
                # The rounds gave the rest of the freed capacity to it, which is not free yet.
                explanation.outcome = f"waits: it would fit on {where}, once {after}"
                explanation.chapters = [each for each in explanation.chapters if each[0] != "nodes"]
            elif ending and not explanation.is_at_once:
                explanation.outcome = f"waits for capacity on {where}: other pods are ending there"
                explanation.add("ending", *map(_end_of, ending))
        elif outcome.startswith("is nominated to "):
            explanation.outcome = f"waits: it would be nominated to {outcome.removeprefix('is nominated to ')}"
        return
    state = {"Running": "runs on", "Pending": "starts on"}.get(pod.status.phase, f"is {pod.status.phase} on")
    explanation.outcome = f"{'is ending on' if pod.is_terminating() else state} {node}"
    if outcome.startswith(("is preempted by ", "moves from ")):
        explanation.add("may end", f"may be preempted or moved for {ends}")


def tell_workload_as_living(explanation: Explanation) -> None:
    """Of a workload that the rounds have admitted, and that is not admitted yet."""
    after = _taken_after(explanation)
    if any(heading == "preempted" for heading, _ in explanation.chapters):
        explanation.outcome = "waits: it would be admitted once other workloads are preempted"
        _rename_preempted(explanation)
    elif after:
        explanation.outcome = f"waits: it would be admitted once {after}"
    else:
        explanation.outcome = "waits: by now it would be admitted"
    explanation.chapters = [("would hold" if name == "holds" else name, lines) for name, lines in explanation.chapters]


def _taken_after(explanation: Explanation) -> str:
    """Which pods have to be preempted for others first; taken out of the chapters."""
    after = [line for heading, lines in explanation.chapters if heading == "after" for line in lines]
    explanation.chapters = [each for each in explanation.chapters if each[0] != "after"]
    return ", ".join(after)


def _tell_preemption(explanation: Explanation, where: str) -> None:
    """The rounds preempted pods for it, which no cluster has done yet. The nodes were counted after that."""
    explanation.outcome = f"waits: it fits on {where}, {_ONCE_PREEMPTED}"
    _rename_preempted(explanation)


def _rename_preempted(explanation: Explanation) -> None:
    explanation.chapters = [
        ("has to preempt" if heading == "preempted" else heading, lines)
        for heading, lines in explanation.chapters
        if heading != "nodes"
    ]


def tell_gang_as_living(
    explanation: Explanation, members: Sequence[Pod], others: Collection[Pod], nodes: Collection[str]
) -> None:
    """Says which of its pods run, which are bound and do not run yet, and which have no node: what the facts would
    come to says nothing of that. `others`: all pods of the cluster. `nodes`: where its waiting pods would be placed."""
    after = _taken_after(explanation)
    there = [pod for pod in members if not pod.is_finished()]
    waiting = [pod for pod in there if not pod.spec.node_name]
    running = [pod for pod in there if pod.spec.node_name and pod.status.phase == "Running"]
    starting = [pod for pod in there if pod.spec.node_name and pod.status.phase != "Running"]
    outcome = explanation.outcome
    if waiting and not outcome.startswith("waits"):
        if any(heading == "preempted" for heading, _ in explanation.chapters):
            explanation.outcome = f"waits: its pods fit {_ONCE_PREEMPTED}"
            _rename_preempted(explanation)
        elif after:
            explanation.outcome = f"waits: its pods would fit once {after}"
        elif not explanation.is_at_once and (ending := _ending_on(others, nodes)):
            explanation.outcome = f"waits for capacity on {few(sorted(nodes), _MOST_PODS)}: other pods are ending there"
            explanation.add("ending", *map(_end_of, ending))
        elif running or starting:
            of_all = f"{len(running):,} of {len(there):,} pods run"
            explanation.outcome = f"{of_all}, {len(waiting):,} {'waits' if len(waiting) == 1 else 'wait'}: by now "
            explanation.outcome += "it fits" if len(waiting) == 1 else "they fit"
        else:
            explanation.outcome = f"waits: by now it would be admitted, {outcome.replace('runs', 'running')}"
    elif starting and not waiting:
        explanation.outcome = f"starts: {len(running):,} of {len(there):,} pods run"
    lines = [
        *(f"runs on {line}" for line in by_node(running, is_full=True)),
        *(f"starts on {line}" for line in by_node(starting, is_full=True)),
        f"without a node: {few(sorted(pod.metadata.key for pod in waiting), _MOST_PODS)}" if waiting else "",
    ]
    explanation.chapters = [each for each in explanation.chapters if each[0] not in ("pods", "waiting")]
    insert(explanation, "pods", *lines)


def _ending_on(pods: Iterable[Pod], nodes: Collection[str]) -> list[Pod]:
    return [pod for pod in pods if any(_is_ending_on(pod, node) for node in nodes)]


def _is_ending_on(pod: Pod, node: str) -> bool:
    return pod.spec.node_name == node and pod.is_terminating() and not pod.is_finished()


def _end_of(pod: Pod) -> str:
    until = pod.metadata.deletion_timestamp
    return f"{pod.metadata.key}, until {until:%H:%M:%S} UTC at the latest" if until is not None else pod.metadata.key


def said(pod: Pod, explanation: Explanation) -> str:
    """Returns the last message of its scheduler, without the sentences that the explanation has under other headings.
    Shoal's scheduler adds the nearest node and what would help, as they were at that time."""
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "False" and (each.message or each.reason):
            told = {_alike(line) for _, lines in explanation.chapters for line in lines}
            sentences = _SENTENCES.split(each.message or each.reason)
            kept = [one for one in sentences if not (_alike(one) in told or one.startswith(NEAREST_BEGINNINGS))]
            return f"{pod.spec.scheduler_name} says: {' '.join(kept or sentences)}"
    is_silent = pod.status.phase == "Pending" and not pod.spec.node_name and not pod.spec.scheduling_gates
    if not is_silent:
        return ""
    name, near = pod.spec.scheduler_name, near_scheduler(pod)
    question = f"did you mean {near}?" if near not in ("", name) else "does it run?"
    return f"{name} has said nothing of it yet; {question}"


def tell_assumed_settings(explanation: Explanation, documents: Iterable[Document], pods: Collection[str]) -> None:
    """Of an answer for which the settings of `shoal run` are not known. `pods`: of the object that is explained."""
    is_shoals = any(
        isinstance(each.value, Pod)
        and each.value.metadata.key in pods
        and each.value.spec.scheduler_name == _SHOAL
        and each.value.status.phase == "Pending"
        for each in documents
    )
    if is_shoals and explanation.outcome.startswith("waits"):
        explanation.add("settings", _ASSUMED)


def _alike(sentence: str) -> str:
    return sentence.rstrip(".").casefold()


def is_admitted(workload: Workload | None) -> bool:
    """None: there is no object of it."""
    conditions = () if workload is None else workload.status.conditions
    return is_condition_true(conditions, "Admitted")


def is_called_gang(meta: ObjectMeta, gang: Gang | None) -> bool:
    """Whether users call the pods of this owner a gang. Every job in a queue starts whole and is not called a gang, and
    neither is a gang of one pod."""
    is_said = GANG in meta.annotations or KUEUE_QUEUE_LABEL not in meta.labels
    return is_said and (gang is None or gang.facts is None or gang.facts.minimum != 1)


def admission_lines(workload: Workload | None) -> list[str]:
    """Returns the queue by which it runs, and its flavors."""
    if workload is None:
        return []
    admission = workload.status.admission
    if admission is None:
        return [f"workload {workload.metadata.key} of queue {workload.spec.queue_name}"]
    lines = [f"workload {workload.metadata.key} of queue {workload.spec.queue_name}, in {admission.cluster_queue}"]
    for each in admission.pod_set_assignments:
        flavors = ", ".join(sorted(set(each.flavors.values()))) or "no flavor"
        lines.append(f"pods {each.name}: flavor {flavors}")
    return lines


def flavor_label_lines(workload: Workload | None, documents: Sequence[Document]) -> list[str]:
    """The node labels that its flavors require of the nodes of its pods, and that no node has."""
    admission = None if workload is None else workload.status.admission
    assigned = () if admission is None else admission.pod_set_assignments
    names = {flavor for each in assigned for flavor in each.flavors.values()}
    labels = {pair for each in documents if isinstance(each.value, Node) for pair in each.value.metadata.labels.items()}
    return [
        f"ResourceFlavor {flavor.metadata.name} adds the nodeSelector {key}={value} to its pods (spec.nodeLabels)"
        for each in documents
        if isinstance(flavor := each.value, ResourceFlavor) and flavor.metadata.name in names and labels
        for key, value in flavor.spec.node_labels.items()
        if (key, value) not in labels
    ]


def group_of_maker(documents: Iterable[Document], kind: str, key: str) -> str:
    """The PodGroup of a job of another project; empty where there is none."""
    namespace, _, name = key.partition("/")
    for each in documents:
        group = each.value
        if isinstance(group, VolcanoPodGroup | KaiPodGroup) and group.metadata.namespace == namespace:
            owners = group.metadata.owner_references
            if any(owner.kind.lower() == kind and owner.name == name for owner in owners):
                return group.metadata.key
    return ""


def condition_lines(workload: Workload | None) -> list[str]:
    """Returns the conditions that its controllers have written on it."""
    conditions = () if workload is None else workload.status.conditions
    found = [each for each in conditions if each.type in _TOLD and (each.message or each.reason)]
    # Why it was stopped says more than what has been taken from it since.
    found.sort(key=lambda each: not (each.type in _STOPPED and each.status == "True"))
    lines: dict[str, str] = {}
    for each in found:
        lines.setdefault(each.message or each.reason, f"{each.type} {each.status}: {each.message or each.reason}")
    return list(lines.values())[:_MOST_WORDS]


def insert(explanation: Explanation, heading: str, *lines: str) -> None:
    """After what it asks, before why it waits."""
    kept = [line for line in lines if line]
    if kept:
        at = next(
            (at for at, (name, _) in enumerate(explanation.chapters) if name not in _HEAD), len(explanation.chapters)
        )
        explanation.chapters.insert(at, (heading, kept))


def renamed(explanation: Explanation, title: str) -> Explanation:
    explanation.title = title
    return explanation


def counted(pods: Sequence[Pod], waiting: int, lost: int) -> str:
    """`lost`: of those whose node is gone, which are not among `pods`."""
    on_nodes = [pod for pod in pods if pod.spec.node_name and not pod.is_finished()]
    run = sum(1 for pod in on_nodes if pod.status.phase in ("Running", ""))
    counted = (
        (run, "run" if run != 1 else "runs"),
        (len(on_nodes) - run, "start" if len(on_nodes) - run != 1 else "starts"),
        (waiting, "wait" if waiting != 1 else "waits"),
        (lost, "lost their node" if lost != 1 else "lost its node"),
        (sum(1 for pod in pods if pod.status.phase == "Succeeded"), "succeeded"),
        (sum(1 for pod in pods if pod.status.phase == "Failed"), "failed"),
    )
    parts = [f"{count:,} {word}" for count, word in counted if count]
    return ", ".join(parts)


def by_node(pods: Sequence[Pod], *, is_full: bool = False) -> Iterator[str]:
    """`is_full`: pods with their namespace."""
    found: dict[str, list[str]] = {}
    for pod in pods:
        if pod.spec.node_name and not pod.is_finished():
            found.setdefault(pod.spec.node_name, []).append(pod.metadata.key if is_full else pod.metadata.name)
    for node, names in sorted(found.items()):
        yield f"{node}: {few(sorted(names), _MOST_PODS)}"


def without_pods(value: object) -> str:
    spec = getattr(value, "spec", None)
    if isinstance(value, Unknown):
        state = (value.raw.get("status") or {}).get("state")
        # A refused Job of Volcano has the cause here.
        message = one_line(str(state.get("message") or "")) if isinstance(state, dict) else ""
        return f"has no pods: {message}" if message else "has no pods"
    if getattr(spec, "suspend", False):
        return "is suspended and has no pods"
    if getattr(spec, "replicas", 1) == 0:
        return "has no pods: it asks for 0 replicas"
    conditions = getattr(getattr(value, "status", None), "conditions", ())
    ended = next(
        (each.type for each in conditions if each.type in ("Complete", "Failed") and each.status == "True"), ""
    )
    return f"has ended: {ended}" if ended else "has no pods"

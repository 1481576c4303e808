"""Explains a pod, gang or workload by name, and a Job or Deployment by its pods; objects of a live cluster are
described with their observed state.

`shoal why` does not place pods on a live cluster. Its answer separates what would happen now from facts: the node of a
pod and the last message of its scheduler. The objects themselves say which of the two they are: a living cluster gives
every pod a phase. So a snapshot gets the same story as the cluster it was taken of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from shoal.api.decode import Document, meta_of
from shoal.api.pod import Pod
from shoal.api.run_configuration import RunConfiguration
from shoal.api.workloads import Job
from shoal.cli.claim_facts import claim_lines
from shoal.cli.deleted_nodes import lost_of_gang, on_lost_nodes
from shoal.cli.earliest_start import earliest_words
from shoal.cli.explanation_text import (
    NOT_CONSIDERED,
    admission_lines,
    by_node,
    condition_lines,
    counted,
    flavor_label_lines,
    group_of_maker,
    insert,
    is_admitted,
    is_called_gang,
    renamed,
    said,
    tell_as_living,
    tell_gang_as_living,
    tell_workload_as_living,
    without_pods,
)
from shoal.cli.live_history import Family
from shoal.cli.manifests import Loaded, loaded_of, rounds_of
from shoal.cli.missing_pods import missing_by_spec, pod_of_template, replica_sets_of
from shoal.cli.object_names import GANG, POD, WORKLOAD, Subject, Subjects
from shoal.cli.pod_corrections import PodCorrections
from shoal.cli.preemption_options import policy_of_rules, rules_in_use, steps_of_rules
from shoal.cli.quota_raises import raises_for
from shoal.cli.resumption import tell_resumption
from shoal.cli.subject_objects import SubjectObjects
from shoal.engine.from_api.queues import is_finished
from shoal.engine.reasons import Code
from shoal.sim.explanation import explain
from shoal.sim.held_by_queues import without_queue_objects
from shoal.sim.held_help import tell_held_help
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.remedies import Objects, fits_beside
from shoal.sim.rounds import Rounds
from shoal.sim.workload_explanation import queue_names
from shoal.store.held_pods import HeldPod, pods_of
from shoal.views.asks import pods_words
from shoal.views.explanation import NOT_CREATED, WOULD_RUN, Explanation
from shoal.views.refused_pods import not_created_words, tell_refusal

GoOn = Callable[[], bool]


class Explainer:
    """Explains one subject. An instance cannot be used again, since its rounds are used up."""

    def __init__(self, documents: Sequence[Document], loaded: Loaded, seed: int, go_on: GoOn) -> None:
        self._documents = documents
        self._loaded = loaded
        self._go_on = go_on
        self._seed = seed
        self._objects = Objects(documents, loaded.manifests.events)
        self._is_living = self._objects.is_living
        # The rounds have to end as those of the scheduler that runs there: it moves no pods unless it is configured to.
        own = rules_in_use(documents)
        rules = own or RunConfiguration()
        self._steps = steps_of_rules(rules) if self._is_living or own is not None else None
        self._rounds: Rounds = rounds_of(loaded, seed, steps=self._steps)
        self._rounds.victim_policy = policy_of_rules(rules.preemption)
        cluster = loaded.cluster
        self._queued = set(self._rounds.workloads) if isinstance(self._rounds, QueueRounds) else set[str]()
        self._related = SubjectObjects(documents, self._queued)
        self._pods, self._workloads = self._related.pods, self._related.workloads
        held_back = queue_names(self._rounds) - self._queued
        self._known = {
            *cluster.pods,
            *cluster.pending.in_order(),
            *pods_of(loaded.manifests.gated, self._pods),
            *held_back,
        }
        """Pods that have not ended, those that are to be made too."""
        written = {meta_of(each.value).key for each in documents if isinstance(each.value, Job)}
        # A job that is held back is no gang yet, though it is known that it will be one.
        self._gangs = {gang.name for gang in cluster.gangs if gang.waiting or gang.running or gang.name not in written}

    def about(self, name: str, namespace: str = "", *, is_only: bool = False) -> Explanation:
        """`is_only`: the namespace was requested, so objects of others are not meant."""
        uncreated = self._known - set(self._pods) if self._is_living else frozenset[str]()
        subjects = Subjects(self._documents, self._known, self._gangs, self._queued, uncreated)
        subject = subjects.find(name, namespace, is_only=is_only)
        # Before the rounds, which place pods.
        self.family = self._family(subject)
        explanation = self._about(subject)
        self._tell_refused(subject, explanation)
        if self.family.missing:
            would_run = self._would_run(subject, explanation)
            self.family = self.family._replace(would_run=would_run, missing_pod=self._missing_pod(subject))
        return explanation

    def _about(self, subject: Subject) -> Explanation:
        if subject.kind == POD:
            return self._pod(subject.key)
        if subject.kind == GANG:
            return self._gang(subject.key)
        if subject.kind == WORKLOAD:
            return self._workload(subject.key)
        return self._maker(subject)

    def _family(self, subject: Subject) -> Family:
        """The object and those whose Events tell of it."""
        gang = self._loaded.cluster.gangs.find(subject.key)
        if subject.kind == POD:
            return Family(POD, subject.key, [subject.key] if subject.key in self._pods else [])
        keys = [pod.metadata.key for pod in self._related.pods_of(subject)]
        if gang is not None:
            keys += [key for key in (*gang.waiting, *gang.running) if key in self._pods]
        order = {"Failed": 0, "Pending": 1, "": 1}
        pods = sorted(dict.fromkeys(keys), key=lambda key: order.get(self._pods[key].status.phase, 2))
        owners = dict.fromkeys(
            f"{namespace}/{name}"
            for key in pods
            for namespace, _, name in self._related.members.owners(self._pods[key])
        )
        if subject.kind == "deployment":
            owners |= dict.fromkeys(replica_sets_of(self._documents, subject.key))
        return Family(
            subject.kind,
            subject.key,
            pods,
            self._related.workload_of(subject),
            [key for key in owners if key != subject.key],
            self._missing(subject),
        )

    def _missing(self, subject: Subject) -> int:
        """Pods that the controller has yet to create: those that the facts have without an object, or else what its
        spec says beyond those that exist."""
        there = self._related.keys_of(subject)
        made = sum(1 for key in there if key not in self._pods)
        return made or missing_by_spec(self._related.value_of(subject), len(there))

    def _would_run(self, subject: Subject, explanation: Explanation) -> bool:
        """Whether the missing pods would find places beside all others."""
        if any(key not in self._pods for key in self._related.keys_of(subject)):
            return WOULD_RUN in explanation.outcome
        pod = self._missing_pod(subject)
        return pod is not None and fits_beside(self._rounds, pod, self.family.missing, self._go_on)

    def _missing_pod(self, subject: Subject) -> Pod | None:
        return pod_of_template(self._related.value_of(subject))

    def _refused(self, subject: Subject) -> dict[str, HeldPod]:
        """Pods that the API server would not create, by the quotas and limits that were read."""
        keys = [subject.key] if subject.kind == POD else self._related.keys_of(subject)
        held = ((key, self._loaded.manifests.gated.get(key)) for key in keys)
        return {key: hold for key, hold in held if isinstance(hold, HeldPod) and hold.code == Code.FORBIDDEN}

    def _tell_refused(self, subject: Subject, explanation: Explanation) -> None:
        refused = self._refused(subject)
        pod = self._objects.pod(next(iter(refused), ""))
        namespace = subject.key.partition("/")[0]
        raises = raises_for(without_queue_objects(self._documents), refused, namespace)
        if raises.found and pod is not None:
            fits = fits_beside(self._rounds, pod, len(refused), self._go_on)
            tell_refusal(
                explanation,
                raises.found,
                namespace,
                would_run=fits,
                is_living=self._is_living,
                obstacle=raises.obstacle,
            )
            if subject.kind == POD:
                explanation.outcome = "waits: it is not created"

    # -- a pod -----------------------------------------------------------------------------------------------

    def _pod(self, key: str) -> Explanation:
        pod = self._pods.get(key)
        if pod is not None and pod.is_finished():
            explanation = Explanation(f"pod {key}", f"has ended: {pod.status.phase}")
            explanation.add("because", pod.status.reason)
            explanation.add("ran on", pod.spec.node_name)
            return explanation
        corrections = PodCorrections(self._documents, self._objects, self._runs_among)
        if key in self._lost:
            explanation = Explanation(key, self._lost[key])
            corrections.tell(explanation, key)
            return explanation
        explanation = self._told(key)
        corrections.tell(explanation, key)
        asked = self._objects.pod(key)
        if asked is not None and explanation.outcome.startswith("waits"):
            explanation.add("claims", *claim_lines(self._documents, asked))
        if pod is not None and pod.status.phase:
            tell_as_living(explanation, pod, self._pods.values())
            insert(explanation, "scheduler", said(pod, explanation))
        elif pod is None and self._is_living and explanation.outcome.startswith("runs on "):
            where = explanation.outcome.removeprefix("runs on ")
            explanation.outcome = f"{NOT_CREATED}it yet; {WOULD_RUN}{where}"
        if pod is not None and not pod.spec.node_name:
            explanation.add("earliest", self._earliest(key))
        return explanation

    # -- a gang ----------------------------------------------------------------------------------------------

    def _gang(self, key: str) -> Explanation:
        gang = self._loaded.cluster.gangs.find(key)
        waiting = [self._pods[name] for name in ([] if gang is None else gang.waiting) if name in self._pods]
        running = [] if gang is None else [name for name in gang.running if name not in self._lost]
        members = waiting + [self._pods[name] for name in running if name in self._pods]
        explanation = self._told(key)
        if not self._tell_missing(key, explanation, "waits:") and any(pod.status.phase for pod in members):
            tell_gang_as_living(explanation, members, self._pods.values(), self._nodes_of(waiting))
        explanation.add("lost", *lost_of_gang(self._lost, key, self._loaded.manifests.events))
        insert(explanation, "scheduler", next((words for pod in waiting if (words := said(pod, explanation))), ""))
        if waiting:
            explanation.add("earliest", self._earliest(key))
        return explanation

    def _nodes_of(self, pods: Sequence[Pod]) -> set[str]:
        """Where the rounds have placed them."""
        cluster = self._loaded.cluster
        placed = (cluster.pods.get(pod.metadata.key) for pod in pods)
        return {cluster.names[allocation.row] for allocation in placed if allocation is not None}

    def _tell_missing(self, key: str, explanation: Explanation, state: str) -> bool:
        """Says of an object of a cluster that pods which its controller has yet to create do not run. The rounds place
        such pods, so this is called after them."""
        gang = self._loaded.cluster.gangs.find(key)
        names = [] if gang is None else [*gang.waiting, *gang.running]
        if gang is None and isinstance(self._rounds, QueueRounds):
            names = list(self._rounds.pods.running_of(key))
        missing = sum(name not in self._pods for name in names)
        is_told = self._is_living and missing > 0 and not explanation.outcome.startswith("waits")
        if is_told:
            pods = pods_words(missing)
            explanation.outcome = f"{state} its controller has not created {pods} yet"
            if gang is not None:
                explanation.outcome += f"; {WOULD_RUN}the nodes below"
        return is_told

    # -- a workload ------------------------------------------------------------------------------------------

    def _workload(self, key: str) -> Explanation:
        written = self._workloads.get(key)
        if written is not None and is_finished(written):
            ended = next(each for each in written.status.conditions if each.type == "Finished")
            return Explanation(
                f"workload {key}", "has finished", ended.reason, [("because", [ended.message or "no word"])]
            )
        explanation = renamed(self._told(key), f"workload {key}")
        if self._is_living and not is_admitted(written):
            if not explanation.outcome.startswith("waits"):
                tell_workload_as_living(explanation)
            insert(explanation, "status", *(condition_lines(written) or [NOT_CONSIDERED]))
        elif not self._tell_missing(key, explanation, "is admitted and waits:"):
            self._tell_waiting(key, explanation)
        if explanation.outcome.startswith("waits"):
            explanation.add("earliest", self._earliest(key))
        return explanation

    def _tell_waiting(self, key: str, explanation: Explanation) -> None:
        """Names the pods of an admitted workload that have no places on nodes."""
        if not isinstance(self._rounds, QueueRounds) or explanation.outcome != "is admitted":
            return
        pending = self._rounds.cluster.pending
        waiting = [name for name in self._rounds.pods.each_of(key) if name in pending and name in self._pods]
        if waiting:
            explanation.outcome = f"is admitted; {pods_words(len(waiting))} {'waits' if len(waiting) == 1 else 'wait'}"
            namespace, _, name = waiting[0].partition("/")
            named = self._objects.pod_names(waiting)
            explanation.add("pods", f"those that wait: {named}", f"see shoal why pod/{name} -n {namespace}")

    # -- the owner of pods -------------------------------------------------------------------------------------

    def _maker(self, subject: Subject) -> Explanation:
        explanation = self._of_maker(subject)
        workload = self._workloads.get(self._related.workload_of(subject))
        if is_admitted(workload) and "queued as workload" not in explanation.title:
            flavors = flavor_label_lines(workload, self._documents)
            insert(explanation, "queue", *admission_lines(workload), *flavors)
        for key in self._related.workloads_of(subject)[1:]:
            more = self._workloads[key]
            if not (is_admitted(more) or is_finished(more)):
                insert(explanation, "grows", f"workload {key} asks for more", *condition_lines(more))
        return explanation

    def _of_maker(self, subject: Subject) -> Explanation:
        value = self._related.value_of(subject)
        workload = self._related.workload_of(subject)
        if workload and not self._is_about_pods(subject, workload):
            return renamed(self._workload(workload), f"{subject.kind} {subject.key}, queued as workload {workload},")
        if subject.key in self._gangs:
            gang = self._loaded.cluster.gangs.find(subject.key)
            is_reported = value is not None and is_called_gang(meta_of(value), gang)
            return renamed(self._gang(subject.key), f"{subject.kind} {subject.key}{', a gang,' if is_reported else ''}")
        pods = self._related.pods_of(subject)
        # Pods that are to be made have no object yet, and are told of as the facts have them.
        waiting = [
            key for key in self._related.keys_of(subject) if key not in self._pods or not self._pods[key].spec.node_name
        ]
        lost = [f"{pod.metadata.name} {where}" for pod in pods if (where := self._lost.get(pod.metadata.key))]
        pods = [pod for pod in pods if pod.metadata.key not in self._lost]
        counts = counted(pods, len(waiting), len(lost))
        if not waiting:
            group = "" if counts else group_of_maker(self._documents, subject.kind, subject.key)
            if group in self._loaded.manifests.gated:
                return renamed(self._told(group), f"{subject.kind} {subject.key}, by its PodGroup {group},")
            words = f"has no pods yet; its PodGroup {group} exists" if group else without_pods(value)
            explanation = Explanation(f"{subject.kind} {subject.key}:", f"pods: {counts}" if counts else words)
            explanation.add("pods", *by_node(pods), *lost)
            if not counts:
                tell_resumption(explanation, value, self._rounds, self._go_on, is_living=self._is_living)
            return explanation
        # Those that the API server refuses to create say more than those that would be placed.
        first = next(iter(self._refused(subject)), waiting[0])
        # On a cluster, a pod that does not exist yet has no name yet.
        is_named = not self._is_living or first in self._pods
        title = f"{subject.kind} {subject.key}: {first}" if is_named else f"{subject.kind} {subject.key}:"
        explanation = renamed(self._pod(first), title)
        if not is_named and explanation.code == Code.FORBIDDEN:
            hold = self._refused(subject).get(first)
            explanation.outcome = not_created_words("" if hold is None else hold.message)
        named = self._objects.pod_names(waiting)
        explanation.chapters.insert(0, ("pods", [counts, f"those that wait: {named}", *lost]))
        return explanation

    def _is_about_pods(self, subject: Subject, workload: str) -> bool:
        """Whether the pods of a queued job tell more than its queue: where any has a node, or waits for one after the
        admission."""
        pods = self._related.pods_of(subject)
        if is_admitted(self._workloads.get(workload)):
            return any(pod.spec.node_name or not pod.is_finished() for pod in pods)
        return any(pod.spec.node_name for pod in pods)

    @cached_property
    def _lost(self) -> dict[str, str]:
        return on_lost_nodes(self._documents)

    def _earliest(self, key: str) -> str:
        return earliest_words(self._documents, self._seed, key, self._go_on, steps=self._steps)

    def _runs_among(self, documents: Sequence[Document], key: str) -> bool:
        """Whether the pod runs if everything is decided anew about these documents."""
        loaded = loaded_of(documents)
        rounds = rounds_of(loaded, self._seed, steps=self._steps)
        found = explain(rounds, loaded.manifests.gated, key, lambda: False)
        return found.outcome.startswith("runs on ") and found.is_at_once

    def _told(self, key: str) -> Explanation:
        manifests = self._loaded.manifests
        found = explain(self._rounds, manifests.gated, key, self._go_on, self._objects)
        tell_held_help(found, key, self._documents, manifests, self._rounds, self._objects, self._go_on)
        return found

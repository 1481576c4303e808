"""Tries the changes of queues of Volcano and KAI that may let a held pod or group go, and says which of them help.

Guarantees: a printed change was tried with the rules of the queues, and the pods then found places on the nodes, with
another change where they would not find them. Of a group without pods only the queues were asked: such changes are no
remedies, and the answer lists them under a heading of their own.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from shlex import quote as quoted
from typing import Any, NamedTuple

from msgspec import structs

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.groups.kai import KaiPodGroup
from shoal.api.groups.volcano import VolcanoPodGroup
from shoal.engine.events import Event, PodArrived, PodGone
from shoal.engine.pod_identity import PodLabels
from shoal.sim.held_by_queues import held_under
from shoal.sim.remedies import Objects, RemedyTrial, WaitingSubject, remedies_of
from shoal.sim.remedies.trial import GoOn
from shoal.sim.rounds import Rounds
from shoal.store.held_pods import HeldPod, QueueChange
from shoal.store.manifest_cluster import ManifestCluster
from shoal.views.enumeration import few
from shoal.views.explanation import QUEUE_ALONE, Explanation
from shoal.views.remedies import Remedy, both
from shoal.views.remedy_commands import FieldEdit, label_commands, replacement_command

_MOST_RAISES = 8
_MOST_REMEDIES = 3
_MOST_NAMES = 4
_NO_PLACES = "A change of the queue alone does not help: its pods find no places on the nodes."
_OVERTAKEN = "Others come before it, and take what a raise of the queue adds."
_UNTRIED = "Its pods do not exist yet: whether they find places on the nodes was not tried."

_VOLCANO_GROUPS, _JOBS = "podgroups.scheduling.volcano.sh", "jobs.batch.volcano.sh"

_Key = tuple[str, str, tuple[str, ...]]
_Changes = dict[_Key, QueueChange]


class _World(NamedTuple):
    """What was read, and the rounds that decided it."""

    documents: Sequence[Document]
    manifests: ManifestCluster
    rounds: Rounds
    objects: Objects


def tell_held_help(
    explanation: Explanation,
    subject: str,
    documents: Sequence[Document],
    manifests: ManifestCluster,
    rounds: Rounds,
    objects: Objects,
    go_on: GoOn,
) -> None:
    """Adds what would let the pod or group go, if a queue of Volcano or KAI holds it."""
    hold = hold_of(manifests, subject)
    if hold is None or not hold.changes:
        return
    _HeldHelp(explanation, subject, hold, _World(documents, manifests, rounds, objects), go_on).tell()


def hold_of(manifests: ManifestCluster, subject: str) -> HeldPod | None:
    """Of a pod, or of a group by one of its pods."""
    found = manifests.gated.get(subject)
    if found is None:
        holds = (each for each in manifests.gated.values() if isinstance(each, HeldPod) and each.group == subject)
        found = next(holds, None)
    return found if isinstance(found, HeldPod) else None


class _HeldHelp:
    def __init__(self, explanation: Explanation, subject: str, hold: HeldPod, world: _World, go_on: GoOn) -> None:
        self._explanation = explanation
        self._hold = hold
        self._world = world
        self._go_on = go_on
        gated = world.manifests.gated
        self._keys = [key for key, each in gated.items() if each is hold or each == hold]
        self._is_pod = any(isinstance(event, PodArrived) and event.key == subject for event in self._events)
        self._subject = subject
        self._is_overtaken = False
        """Whether amounts were raised again and again, and others took them."""

    @property
    def _events(self) -> Sequence[Event]:
        return self._world.manifests.before_queues

    def tell(self) -> None:
        found: list[Remedy] = []
        untried: list[Remedy] = []
        note = ""
        for at in range(len(self._hold.changes)):
            enough = self._enough(at)
            if enough is None:
                continue
            changes, freed = enough
            remedy = self._remedy(list(changes.values()))
            if not freed:
                untried.append(Remedy(f"{remedy.words} {_UNTRIED}", remedy.commands))
                continue
            tried = self._with_places(remedy, freed)
            note = "" if tried else _NO_PLACES
            found += tried
        self._explanation.remedies = found[:_MOST_REMEDIES]
        lines = [line for remedy in found[:_MOST_REMEDIES] for line in remedy.lines()]
        note = note or (_OVERTAKEN if self._is_overtaken else "")
        self._explanation.add("would help", *lines, "" if found or untried else note)
        self._explanation.untried = untried[:_MOST_REMEDIES]
        self._explanation.add(QUEUE_ALONE, *(line for each in self._explanation.untried for line in each.lines()))

    def _enough(self, at: int) -> tuple[_Changes, list[PodArrived]] | None:
        """The changes of one alternative that suffice, and the pods that they free. Other groups may come first: then
        the amounts are raised again."""
        changes: _Changes = {}
        hold = self._hold
        for _ in range(_MOST_RAISES):
            if at >= len(hold.changes) or not self._go_on():
                return None
            before = dict(changes)
            for each in hold.changes[at]:
                key = (each.kind, each.name, each.path)
                changes[key] = structs.replace(each, before=changes[key].before) if key in changes else each
            if changes == before:
                return None
            documents, events = self._changed(changes)
            held = held_under(documents, self._world.manifests, events)
            free = {key for key in self._keys if key not in held}
            if free and (not self._is_pod or self._subject in free):
                return changes, [event for event in events if isinstance(event, PodArrived) and event.key in free]
            hold = next(held[key] for key in self._keys if key in held)
        self._is_overtaken = True
        return None

    def _changed(self, changes: _Changes) -> tuple[list[Document], list[Event]]:
        labels = {change.name: change for change in changes.values() if change.kind == "pod"}
        objects = {(change.kind, change.name): list[QueueChange]() for change in changes.values()}
        for change in changes.values():
            objects[change.kind, change.name].append(change)
        documents = [
            Document(_with(each.value, objects[key]), each.where)
            if (key := (_kind(each.value), _name(each.value))) in objects
            else each
            for each in self._world.documents
        ]
        events = [
            _labelled(event, labels[event.key]) if isinstance(event, PodArrived) and event.key in labels else event
            for event in self._events
        ]
        return documents, events

    # -- places on nodes -----------------------------------------------------------------------------------------

    def _with_places(self, remedy: Remedy, freed: Sequence[PodArrived]) -> list[Remedy]:
        """The remedy, with changes of nodes where its pods find no places without."""
        with self._arrived(freed) as subject:
            trial = RemedyTrial(self._world.rounds, self._world.objects.node_facts, self._go_on)
            if subject is None:
                return []
            if trial.runs(subject):
                return [remedy]
            return [both(remedy, each) for each in remedies_of(trial, subject, self._world.objects).remedies]

    @contextmanager
    def _arrived(self, freed: Sequence[PodArrived]) -> Iterator[WaitingSubject | None]:
        rounds = self._world.rounds
        try:
            for event in freed:
                rounds.apply(event)
            rounds.placement.renew()
            waiting = tuple(event.key for event in freed if event.key in rounds.cluster.pending)
            gang = rounds.cluster.gangs.find(self._hold.group) if self._hold.group else None
            if not waiting:
                yield None
            elif self._is_pod and gang is None:
                yield WaitingSubject(self._subject, (self._subject,))
            elif gang is not None and gang.facts is not None:
                yield WaitingSubject(gang.name, waiting, is_gang=True)
            else:
                yield WaitingSubject(waiting[0], waiting, is_whole=True)
        finally:
            for event in freed:
                rounds.apply(PodGone(event.key))
            rounds.placement.renew()

    # -- words and commands --------------------------------------------------------------------------------------

    def _remedy(self, changes: Sequence[QueueChange]) -> Remedy:
        labels = [change for change in changes if change.kind == "pod"]
        if labels:
            return self._relabelled(labels)
        jobs = {change: job for change in changes if (job := self._volcano_job(change))}
        others = [change for change in changes if change not in jobs]
        words = " ".join([*(_job_words(change, job) for change, job in jobs.items()), *map(_words, others)])
        if any(self._is_owned(change) for change in others):
            words += " Its owner names the queue as well: correct it there for later pods."
        commands = [replacement_command(_JOBS, job, {"queue": str(change.after)}) for change, job in jobs.items()]
        return Remedy(words, (*commands, *_commands(others)) if self._world.objects.is_living else ())

    def _relabelled(self, labels: Sequence[QueueChange]) -> Remedy:
        first, objects = labels[0], self._world.objects
        names = [change.name for change in labels]
        edit = FieldEdit(first.path, first.before, first.after).words()
        words = f"In pod{'s' * (len(names) > 1)} {few(names, _MOST_NAMES)}, {edit}."
        owner = objects.owner(names[0])
        if owner is not None:
            words += f" Pods that {owner[1].lower()} {owner[0]}/{owner[2]} creates later need it in its template."
        there = [name for name in names if name in objects.pods]
        is_commanded = objects.is_living and len(there) == len(names)
        commands = label_commands("pod", there, first.path[-1], str(first.after)) if is_commanded else ()
        return Remedy(words, commands)

    def _is_owned(self, change: QueueChange) -> bool:
        """Whether a PodGroup belongs to a job, which names the queue."""
        if not change.kind.startswith("podgroups."):
            return False
        return any(meta_of(value).owner_references for value in self._objects_of(change))

    def _volcano_job(self, change: QueueChange) -> str:
        """The job of Volcano whose controller sets the queue of this PodGroup; empty if there is none."""
        if change.kind != _VOLCANO_GROUPS or change.path != ("spec", "queue"):
            return ""
        for value in self._objects_of(change):
            for owner in meta_of(value).owner_references:
                if owner.kind == "Job" and owner.api_version.startswith("batch.volcano.sh/"):
                    return f"{meta_of(value).namespace}/{owner.name}"
        return ""

    def _objects_of(self, change: QueueChange) -> Iterator[Any]:
        return (each.value for each in self._world.documents if (_kind(each.value), _name(each.value)) == _id(change))


def _job_words(change: QueueChange, job: str) -> str:
    edit = FieldEdit(change.path, change.before, change.after)
    return f"In job {job}, {edit.words()}: a job is created again for another queue."


def _id(change: QueueChange) -> tuple[str, str]:
    return change.kind, change.name


def _words(change: QueueChange) -> str:
    what = f"{change.kind.partition('.')[0].removesuffix('s')} {change.name}"
    edit = FieldEdit(change.path, change.before, change.after)
    if change.path == ("spec", "queue") or change.path[-1] == "parentQueue":
        return f"In {what}, {edit.words()}."
    return f"Raise {edit.words().partition(':')[0]} of {what} from {change.before} to {change.after}."


def _commands(changes: Sequence[QueueChange]) -> Iterator[str]:
    bodies: dict[tuple[str, str], dict[str, Any]] = {}
    for change in changes:
        bodies[_id(change)] = _merged(bodies.get(_id(change), {}), change)
    for (kind, name), body in bodies.items():
        namespace, _, bare = name.rpartition("/")
        within = f" -n {quoted(namespace)}" if namespace else ""
        patch = quoted(json.dumps(body, separators=(",", ":")))
        yield f"kubectl patch {kind} {quoted(bare)}{within} --type=merge -p={patch}"


def _merged(raw: Mapping[str, Any], change: QueueChange) -> dict[str, Any]:
    """A copy with the field set; what does not change is shared."""
    found = dict(raw)
    inner = found
    for step in change.path[:-1]:
        inner[step] = dict(inner.get(step) or {})
        inner = inner[step]
    inner[change.path[-1]] = change.after
    return found


def _with(value: Any, changes: Sequence[QueueChange]) -> Any:
    if isinstance(value, VolcanoPodGroup | KaiPodGroup):
        return structs.replace(value, spec=structs.replace(value.spec, queue=str(changes[0].after)))
    raw = value.raw
    for change in changes:
        raw = _merged(raw, change)
    return dataclasses.replace(value, raw=raw)


def _kind(value: object) -> str:
    if isinstance(value, VolcanoPodGroup):
        return _VOLCANO_GROUPS
    if isinstance(value, KaiPodGroup):
        return "podgroups.scheduling.run.ai"
    is_queue = isinstance(value, Unknown) and value.kind == "Queue"
    return f"queues.{value.api_version.partition('/')[0]}" if is_queue and isinstance(value, Unknown) else ""


def _name(value: Any) -> str:
    meta = meta_of(value)
    return meta.key if meta.namespace and not isinstance(value, Unknown) else meta.name


def _labelled(event: PodArrived, change: QueueChange) -> PodArrived:
    traits = event.who.traits
    labels = {**dict(traits.labels), change.path[-1]: str(change.after)}
    who = structs.replace(event.who, traits=PodLabels.of(traits.namespace, labels))
    return structs.replace(event, who=who)

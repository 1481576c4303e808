"""Changes of the topology level that a gang requires: a wider one, or the same one preferred."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from msgspec import structs

from shoal.engine.from_api.topologies import KUEUE_PREFERRED, KUEUE_REQUIRED
from shoal.engine.groups import GroupFacts, TopologyRequirement
from shoal.sim.remedies.candidates import Candidate, WaitingSubject
from shoal.sim.remedies.objects import Objects
from shoal.sim.remedies.trial import RemedyTrial
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import FieldEdit, edit_commands, edit_words

_ANNOTATIONS = ("metadata", "annotations")


def looser_levels(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Iterator[Candidate]:
    """The nearest wider levels of the topology first. A workload of a queue is tried with its queue instead."""
    gang = trial.cluster.gangs.find(subject.name) if subject.is_gang and not subject.is_whole else None
    wish = None if gang is None or gang.facts is None else gang.facts.requirement
    if wish is None or not wish.required or wish.slice_level:
        return
    level, pod = wish.required, subject.pods[0]
    named = trial.cluster.topologies.get(wish.topology)
    topologies = [named] if named is not None else list(trial.cluster.topologies.values())
    found = objects.pod(pod)
    is_written = found is not None and KUEUE_REQUIRED in found.metadata.annotations
    for wider in dict.fromkeys(other for each in topologies for other in _above(level, each.levels)):
        words = f"Require topology level {wider} instead of {level}."
        # In an open trial the level may have been corrected before.
        edits = [FieldEdit((*_ANNOTATIONS, KUEUE_REQUIRED), level, wider)] if is_written else []
        remedy = _remedy(objects, subject, edits or objects.edits(pod, level, wider), words)
        yield _candidate(trial, subject, structs.replace(wish, required=wider), remedy)
    edits = [FieldEdit.renamed(_ANNOTATIONS, KUEUE_REQUIRED, KUEUE_PREFERRED, level)] if is_written else []
    remedy = _remedy(objects, subject, edits, f"Prefer topology level {level} instead of requiring it.")
    yield _candidate(trial, subject, structs.replace(wish, required="", preferred=level), remedy)


def _above(level: str, levels: Sequence[str]) -> Sequence[str]:
    return levels[: levels.index(level)][::-1] if level in levels else ()


def _remedy(objects: Objects, subject: WaitingSubject, edits: Sequence[FieldEdit], words: str) -> Remedy:
    """`words`: where the level is not written in the pods."""
    if not edits:
        return Remedy(words)
    target = objects.target(subject.pods)
    return Remedy(edit_words(edits, target), edit_commands(edits, target) if objects.is_living else ())


def _candidate(trial: RemedyTrial, subject: WaitingSubject, wish: TopologyRequirement, remedy: Remedy) -> Candidate:
    def apply(stack: ExitStack) -> None:
        trial.requeue_gang(stack, subject.name)
        trial.change_gang(stack, subject.name, partial(_with_requirement, wish=wish))

    return Candidate(remedy, apply, changes_pods=True)


def _with_requirement(facts: GroupFacts, wish: TopologyRequirement) -> GroupFacts:
    return structs.replace(facts, requirement=wish)

"""Corrects a gang that waits for its own definition: pods that name a group which does not exist, and a minimum above
the number of its pods.

Guarantees: a command is proposed only if the pods run after the change. A similar name is proposed only if its object
exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from msgspec import structs

from shoal.api.groups import coscheduling, kai, volcano
from shoal.engine.from_api.membership import GroupReference, group_references
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.reasons import Code
from shoal.sim.remedies import Objects, RemedyTrial, WaitingSubject
from shoal.units.near_texts import nearest_name
from shoal.views.asks import pods_words
from shoal.views.enumeration import few
from shoal.views.explanation import Explanation
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import FieldEdit, edit_commands, edit_words, number_command

_MOST_NAMES = 4
_MINIMUM: Mapping[type, tuple[str, tuple[str, ...]]] = {
    volcano.VolcanoPodGroup: ("podgroups.scheduling.volcano.sh", ("spec", "minMember")),
    coscheduling.CoschedulingPodGroup: ("podgroups.scheduling.x-k8s.io", ("spec", "minMember")),
    kai.KaiPodGroup: ("podgroups.scheduling.run.ai", ("spec", "minMember")),
}
"""The resource of a group for kubectl, and the field of its minimum, where it can be changed."""


class GangCorrection:
    """What would let a gang start whose definition is wrong."""

    def __init__(self, trial: RemedyTrial, gang: Gang, found: GroupEvidence, objects: Objects) -> None:
        self._trial = trial
        self._gang = gang
        self._found = found
        self._objects = objects
        self.remedies: list[Remedy] = []
        """That were tried and work."""
        self.note = ""
        """A similar name that exists, where no remedy has it."""
        match found.code:
            case Code.GANG_UNKNOWN:
                self._find_name()
            case Code.GANG_TOO_SMALL:
                self._lower_minimum()

    def tell(self, explanation: Explanation, otherwise: str) -> None:
        """`otherwise`: what would help where no remedy was found."""
        explanation.remedies = self.remedies
        lines = [line for remedy in self.remedies for line in remedy.lines()]
        explanation.add("would help", self.note, *(lines or [otherwise]))

    def _lower_minimum(self) -> None:
        gang, found = self._gang, self._found
        group = self._objects.pod_group(gang.name)
        if found.part or found.role or gang.facts is None or found.exist < 1 or type(group) not in _MINIMUM:
            return
        pods = tuple(gang.waiting)
        with ExitStack() as stack:
            self._trial.change_gang(stack, gang.name, lambda facts: structs.replace(facts, minimum=found.exist))
            runs = self._trial.runs(WaitingSubject(gang.name, pods, is_gang=True))
        if not runs:
            return
        resource, path = _MINIMUM[type(group)]
        missing = pods_words(found.needs - found.exist)
        words = (
            f"Lower {'.'.join(path)} of PodGroup {gang.name} from {found.needs} to {found.exist}, or create {missing} "
            "more: whether these would fit was not tried."
        )
        commands = (number_command(resource, gang.name, path, found.exist),) if self._objects.is_living else ()
        self.remedies = [Remedy(words, commands)]

    def _find_name(self) -> None:
        namespace, _, name = self._gang.name.partition("/")
        pods = [pod for pod in self._gang.waiting if pod in self._objects.pods]
        references = group_references(self._objects.pods[pods[0]]) if pods else []
        if len(references) != 1:
            return
        near = nearest_name(name, self._objects.pod_groups(namespace, references[0].kind))
        if not near:
            return
        called, verb = ("Pod", "names") if len(pods) == 1 else ("Pods", "name")
        named = f'{called} {few(pods, _MOST_NAMES)} {verb} PodGroup "{name}"'
        self.note = f'{named}, which does not exist; did you mean "{near}"?'
        with ExitStack() as stack:
            self._trial.regroup(stack, pods, f"{namespace}/{near}")
            subject = WaitingSubject(f"{namespace}/{near}", tuple(pods), is_gang=True, is_whole=True)
            runs = self._trial.runs(subject)
        if runs:
            self.remedies = [self._renamed(pods, references[0], near)]

    def _renamed(self, pods: Sequence[str], reference: GroupReference, near: str) -> Remedy:
        edits = [FieldEdit(reference.steps, reference.name, near)]
        target = self._objects.target(pods)
        return Remedy(edit_words(edits, target), edit_commands(edits, target) if self._objects.is_living else ())

"""Corrects a gang that waits for its own definition: pods that name a group which does not exist, and a minimum above
the number of its pods.

Guarantees: a command is proposed only if the pods run after the change. A similar name is proposed only if its object
exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from msgspec import structs

from shoal.api.groups import coscheduling, kai, kubernetes, volcano
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
from shoal.views.remedy_commands import FieldEdit, copy_command, edit_commands, edit_words, number_command

_MOST_NAMES = 4
_MINIMUM: Mapping[type, tuple[str, tuple[str, ...]]] = {
    volcano.VolcanoPodGroup: ("podgroups.scheduling.volcano.sh", ("spec", "minMember")),
    coscheduling.CoschedulingPodGroup: ("podgroups.scheduling.x-k8s.io", ("spec", "minMember")),
    kai.KaiPodGroup: ("podgroups.scheduling.run.ai", ("spec", "minMember")),
}
"""The resource of a group for kubectl, and the field of its minimum, where it can be changed."""
_GROUP_FIELD = ("spec", "schedulingGroup", "podGroupName")
_MIN_COUNT = ("spec", "schedulingPolicy", "gang", "minCount")


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
        if found.part or found.role or gang.facts is None or found.exist < 1:
            return
        if isinstance(group, kubernetes.PodGroup):
            self._replace_group(found.exist)
        if type(group) not in _MINIMUM:
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

    def _replace_group(self, least: int) -> None:
        """Its scheduling policy cannot be changed, and it cannot be deleted while pods name it."""
        gang, pods = self._gang, tuple(self._gang.waiting)
        _, _, name = gang.name.partition("/")
        copy = f"{name}-{least}"
        target = self._objects.target(pods)
        if gang.running or target.is_template or not self._is_free(f"{gang.name}-{least}", pods):
            return
        with ExitStack() as stack:
            self._trial.change_gang(stack, gang.name, lambda facts: structs.replace(facts, minimum=least))
            # Its pods have to be created again.
            self._trial.requeue_gang(stack, gang.name)
            if not self._trial.runs(WaitingSubject(gang.name, pods, is_gang=True)):
                return
        edits = [FieldEdit(_GROUP_FIELD, name, copy)]
        words = (
            f"Create {pods_words(self._found.needs - least)} more: whether these would fit was not tried. "
            f"Or start with {least}, in another group, because spec.schedulingPolicy of PodGroup {gang.name} cannot be "
            f"changed: create PodGroup {copy} like {name} with minCount {least}. {edit_words(edits, target)}"
        )
        replaced = edit_commands(edits, target) if self._objects.is_living else ()
        created = copy_command("podgroups.scheduling.k8s.io", gang.name, copy, _MIN_COUNT, least)
        self.remedies = [Remedy(words, (created, *replaced) if replaced else ())]

    def _is_free(self, group: str, pods: Sequence[str]) -> bool:
        """Whether no group has this name, and all of the pods exist and can name it."""
        asking = [self._objects.pods.get(pod) for pod in pods]
        named = [[] if pod is None else [each.steps for each in group_references(pod)] for pod in asking]
        return self._objects.pod_group(group) is None and all(steps == [_GROUP_FIELD] for steps in named)

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

"""Corrects requests for an extended resource that no node has, where one with a similar name exists."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from msgspec import structs

from shoal.api.resources import CPU, MEMORY, PODS
from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine.asks import Ask, counted
from shoal.engine.device_demand import WholeGpus
from shoal.engine.device_notation.names import GPU
from shoal.engine.node_rules import models_named
from shoal.sim.remedies.candidates import Candidate, WaitingSubject
from shoal.sim.remedies.objects import Objects
from shoal.sim.remedies.trial import RemedyTrial
from shoal.units.near_texts import nearest_name
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import edit_commands, edit_words

_NATIVE = frozenset({CPU, MEMORY, PODS, "ephemeral-storage"})


class WrongResource:
    """A resource that no node has, and the nearest that a node has."""

    def __init__(self, trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> None:
        self._trial = trial
        self._subject = subject
        self._objects = objects
        asked = counted(trial.cluster.pending[subject.pods[0]].charge.ask)
        offered = {name for node in trial.nodes.values() for name, amount in node.allocatable.items() if amount}
        offered |= {GPU for node in trial.nodes.values() if node.gpus}
        missing = [
            name
            for name, amount in sorted(asked.items())
            if amount and name not in offered | _NATIVE and not name.startswith(RESOURCE_PREFIX)
        ]
        self.name = missing[0] if missing else ""
        self.near = nearest_name(self.name, offered - _NATIVE - asked.keys()) if missing else ""

    def words(self) -> str:
        """Facts."""
        return f"No node has the resource {self.name}; did you mean {self.near}?" if self.near else ""

    def correction(self) -> Candidate:
        """The request for the nearest resource."""
        subject, near = self._subject, self.near
        remedy = renaming_remedy(self._objects, subject.pods, self.name, near)

        def apply(stack: ExitStack) -> None:
            change = partial(with_resource_renamed, old=self.name, new=near)
            self._trial.change_asks(stack, subject.pods, change, are_new=True)
            if subject.is_gang:
                self._trial.requeue_gang(stack, subject.name)

        return Candidate(remedy, apply, changes_pods=True, changes_requests=True)


def renaming_remedy(objects: Objects, pods: tuple[str, ...], old: str, new: str) -> Remedy:
    """The same amount of another resource, where the pods are written."""
    edits = objects.resource_edits(pods[0], old, new)
    if not edits:
        return Remedy(f"Request {new} instead of {old}.")
    target = objects.target(pods)
    return Remedy(edit_words(edits, target), edit_commands(edits, target) if objects.is_living else ())


def with_resource_renamed(ask: Ask, old: str, new: str) -> Ask:
    """The request for the same amount of another resource."""
    amount = dict(ask.requests).get(old, 0)
    others = tuple(each for each in ask.requests if each[0] != old)
    if new == GPU:
        return structs.replace(ask, requests=others, devices=WholeGpus(amount), gpu_models=models_named(ask.nodes))
    return structs.replace(ask, requests=tuple(sorted((*others, (new, amount)))))

"""Finds the existing LocalQueue that a workload means which names one that does not exist, and tries it.

Guarantees: the corrected name is a remedy only if the workload is then admitted, with more quota where that is lacking
as well. If it would wait in that queue, the answer says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from shlex import quote as quoted

from msgspec import structs

from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.remedies import Effect, RemedyKind
from shoal.engine.queues.remedies import Remedy as QuotaRemedy
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.remedies import Objects
from shoal.units.near_texts import nearest_name
from shoal.views.enumeration import few
from shoal.views.remedies import Remedy, both
from shoal.views.remedy_commands import label_commands

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_MOST_NAMES = 4


def choice_words(names: Collection[str], near: str, where: str = "") -> str:
    """Which queues exist, of which another one was named."""
    if near:
        return f'did you mean "{near}"?'
    return f"those that exist{where}: {few(sorted(names), _MOST_NAMES)}." if names else f"no other one exists{where}."


class QueueCorrection:
    """The correction of a workload's queue name."""

    def __init__(self, rounds: QueueRounds, facts: WorkloadFacts, objects: Objects) -> None:
        self._rounds = rounds
        self._facts = facts
        self._objects = objects
        namespace, _, name = facts.queue.partition("/")
        keys = (key.partition("/") for key in rounds.kueue.queues.local_queues)
        self._names = sorted(other for within, _, other in keys if within == namespace)
        self._namespace, self._name = namespace, name
        self._near = nearest_name(name, self._names)
        self.is_needed = bool(name) and name not in self._names

    def words(self) -> str:
        """Facts, with the nearest name."""
        where = f" in namespace {self._namespace}"
        return f"LocalQueue {self._facts.queue} does not exist; {choice_words(self._names, self._near, where)}"

    def tried(
        self, quota: Callable[[], Sequence[QuotaRemedy]], told: Callable[[QuotaRemedy], Remedy]
    ) -> tuple[list[Remedy], str]:
        """The remedies, and what keeps the workload waiting with the corrected name."""
        if not self._near:
            return [], ""
        with self._requeued():
            found = quota()
        correct = self._renamed()
        turn = next((each for each in found if each.kind is RemedyKind.TURN), None)
        if turn is not None and turn.effect in (Effect.ADMITTED, Effect.PREEMPTS):
            return [correct], ""
        raised = [each for each in found if each.effect is Effect.ADMITTED and each.kind is RemedyKind.QUOTA]
        if raised:
            return [both(correct, told(raised[0]))], ""
        return [], f'In LocalQueue "{self._near}" it would wait as well.'

    @contextmanager
    def _requeued(self) -> Iterator[None]:
        kueue, now_s = self._rounds.kueue, self._rounds.now_s
        kueue.put_workload(structs.replace(self._facts, queue=f"{self._namespace}/{self._near}"), now_s)
        self._rounds.placement.renew()
        try:
            yield
        finally:
            kueue.put_workload(self._facts, now_s)
            self._rounds.placement.renew()

    def _renamed(self) -> Remedy:
        namespace, kind, name = self._objects.queued_owner(self._facts.key)
        if kind == "Workload":
            words = f"In workload {namespace}/{name}, spec.queueName: {self._near} instead of {self._name}."
            body = json.dumps({"spec": {"queueName": self._near}}, separators=(",", ":"))
            command = f"kubectl patch workload {quoted(name)} -n {quoted(namespace)} --type=merge -p={quoted(body)}"
            return Remedy(words, (command,) if self._objects.is_living else ())
        pods = [pod for pod in self._rounds.pods.each_of(self._facts.key) if pod in self._objects.pods]
        keys = pods if kind in ("Pod", "PodGroup") and pods else [f"{namespace}/{name}"]
        called = "pod" if keys is pods else kind.lower()
        objects = f"{called}{'s' * (len(keys) > 1)} {few(keys, _MOST_NAMES)}"
        words = f'In {objects}, metadata.labels["{QUEUE_LABEL}"]: {self._near} instead of {self._name}.'
        owner = self._objects.owner(keys[0]) if keys is pods else None
        if owner is not None:
            words += f" Pods that {owner[1].lower()} {namespace}/{owner[2]} creates later need it in its template."
        commands = label_commands(called, keys, QUEUE_LABEL, self._near)
        return Remedy(words, commands if self._objects.is_living else ())

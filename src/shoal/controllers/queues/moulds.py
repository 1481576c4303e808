"""What all ghosts of a pod set have in common: what they ask for and how they stand to others, read from the Workload's
template.

A template that cannot be read makes no ghosts, and is no reason to make none for the other pod sets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec
from msgspec import structs

from shoal.api.kueue import Workload
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod, PodTemplate
from shoal.engine.asks import Ask
from shoal.engine.from_api import Priorities, who_of_pod
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.who import Who
from shoal.units.errors import UserError, Where

_log = logging.getLogger("shoal.queues")
_NOBODYS = {"group": "", "part": "", "role": "", "preempts": False, "yields": False, "returns": False}
AskOf = Callable[[Pod, str], Ask]
"""Of a pod made from the template of a pod set; its name is the Workload's."""


class Mould(msgspec.Struct, frozen=True):
    ask: Ask
    priority: int
    who: Who


class Moulds:
    """Of the workloads whose places are looked for now, each made once."""

    def __init__(self, whole: Callable[[str], Workload | None], ask_of: AskOf) -> None:
        self._whole = whole
        self._ask_of = ask_of
        self._made: dict[str, dict[str, Mould]] = {}

    def of(self, facts: WorkloadFacts, priorities: Priorities) -> dict[str, Mould]:
        """By pod set."""
        found = self._made.get(facts.key)
        if found is None:
            workload = self._whole(facts.key)
            sets = workload.spec.pod_sets if workload is not None else ()
            found = self._made[facts.key] = {}
            for each in sets:
                try:
                    found[each.name] = self._mould(facts, each.name, each.template, priorities)
                except UserError as error:
                    _log.info("no places are kept for pod set %s of %s: %s", each.name, facts.key, error)
        return found

    def forget(self) -> None:
        self._made.clear()

    def _mould(self, facts: WorkloadFacts, pod_set: str, template: PodTemplate, priorities: Priorities) -> Mould:
        namespace, _, name = facts.key.partition("/")
        meta = ObjectMeta(
            name=name,
            namespace=namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
        )
        pod = Pod(metadata=meta, spec=template.spec)
        rank = priorities.of_pod(template.spec, Where(path="spec"))
        return Mould(self._ask_of(pod, pod_set), rank.value, standing_aside(who_of_pod(pod, rank, order=0)))


def standing_aside(who: Who) -> Who:
    """As a ghost stands to others: of no gang, making nobody yield, yielding to nobody."""
    return structs.replace(who, **_NOBODYS)

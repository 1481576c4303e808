"""Estimates how long work is expected to run: by its annotation, or by similar work before.

Rejected: quantiles. With the few runs of equal workloads, the longest known run is the only figure that is seldom too
short, and a reserved start that comes early does no harm.
"""

from __future__ import annotations

from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.workloads import digest_of

_MOST_FORMS = 10_000


class Durations:
    """What is known of run times."""

    __slots__ = ("_longest",)

    def __init__(self) -> None:
        self._longest: dict[tuple[str, bytes], float] = {}
        """(local queue, form) -> the longest run."""

    def learn(self, facts: WorkloadFacts, ran_s: float) -> None:
        """One of its form has finished."""
        form = _form(facts)
        before = self._longest.pop(form, 0.0)
        if len(self._longest) >= _MOST_FORMS:
            del self._longest[next(iter(self._longest))]
        self._longest[form] = max(before, ran_s)

    def expected_s(self, facts: WorkloadFacts) -> float | None:
        """No more than it may run; None if nothing is declared, no equal workload has finished, and it may run
        forever.
        """
        known = facts.duration_s if facts.duration_s is not None else self._longest.get(_form(facts))
        if known is None or facts.left_s is None:
            return facts.left_s if known is None else known
        return min(known, facts.left_s)


def _form(facts: WorkloadFacts) -> tuple[str, bytes]:
    return facts.queue, digest_of(facts.pod_sets)

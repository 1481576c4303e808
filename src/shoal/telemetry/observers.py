"""Observes the scheduler: cycles as a further plan executor, bindings as they are written.

The engine and the controllers do not depend on it. The scheduling loop asks its executors for outcomes when a cycle
begins and gives them the plan when it is decided; the time between is the cycle. Bindings and their answers are seen by
the client between the scheduler and the API server.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter

from shoal.engine.events import Event
from shoal.engine.plan import Evict, Move, Place, Plan, Refuse, RefuseGroup
from shoal.telemetry.scheduling import MOST_TRIES, SchedulingMetrics
from shoal.telemetry.traces import Spans

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
_MANY_TRIES = f"{MOST_TRIES}+"


class SchedulingObserver:
    """`profile` returns the scheduler name of a pod, `members` the pending pods of a gang."""

    def __init__(
        self,
        metrics: SchedulingMetrics,
        profile: Callable[[str], str],
        members: Callable[[str], Iterable[str]] = lambda _: (),
        timer: Callable[[], float] = perf_counter,
        spans: Spans | None = None,
    ) -> None:
        self.metrics = metrics
        self._spans = spans
        self._profile = profile
        self._members = members
        self._timer = timer
        self.refused: set[str] = set()
        """Pods that fitted no node at their last attempt."""
        self._seen: dict[str, float] = {}
        """Pending pods, and since when they are pending."""
        self._tries: dict[str, int] = {}
        """The number of failed attempts of each pod."""
        self._began: float | None = None

    # -- as a plan executor ----------------------------------------------------------------------------------------

    def outcomes(self) -> Sequence[Event]:
        """A cycle begins."""
        self._began = self._timer()
        return ()

    def carry_out(self, plan: Plan) -> None:
        """The cycle has decided."""
        if self._began is not None:
            self.cycle_done(self._timer() - self._began, plan)
            self._began = None

    async def run(self) -> None:
        await asyncio.Event().wait()

    # -- cycles -----------------------------------------------------------------------------------------------------

    def cycle_done(self, seconds: float, plan: Plan) -> None:
        metrics = self.metrics
        metrics.rounds.of().inc()
        metrics.round_seconds.of().observe(seconds)
        if self._spans is not None:
            self._spans.done("scheduling cycle", seconds, _attributes(plan))
        if not plan.intentions:
            return
        results: Counter[tuple[str, str]] = Counter()
        victims: Counter[str] = Counter()
        for intention in plan.intentions:
            if isinstance(intention, Place):
                results[SCHEDULED, self._profile(intention.pod)] += 1
                self.refused.discard(intention.pod)
            elif isinstance(intention, Refuse | RefuseGroup):
                for pod in self._refused(intention):
                    results[UNSCHEDULABLE, self._profile(pod)] += 1
                    self._tries[pod] = self._tries.get(pod, 0) + 1
                    self.refused.add(pod)
            elif isinstance(intention, Evict):
                victims[intention.beneficiary] += 1
            elif isinstance(intention, Move):
                metrics.moves.of().inc()
        share = seconds / (results.total() or 1)
        for (result, profile), count in results.items():
            metrics.attempt_seconds.of(result, profile).observe_many(share, count)
            if result == UNSCHEDULABLE:
                metrics.attempts.of(result, profile).inc(count)
        for count in victims.values():
            metrics.preemptions.of().inc()
            metrics.victims.of().observe(count)

    def _refused(self, refused: Refuse | RefuseGroup) -> Iterable[str]:
        return (refused.pod,) if isinstance(refused, Refuse) else list(self._members(refused.group))

    # -- pods -------------------------------------------------------------------------------------------------------

    def waits(self, pod: str, now_s: float) -> None:
        """The pod exists and has no scheduling gates."""
        self._seen.setdefault(pod, now_s)

    def gone(self, pod: str) -> None:
        """The pod was deleted, or bound by any scheduler."""
        self._seen.pop(pod, None)
        self._tries.pop(pod, None)
        self.refused.discard(pod)

    def binding(self) -> None:
        """A binding is sent; `bound` or `not_bound` follows."""
        self.metrics.in_flight.of().add(1)

    def bound(self, pod: str, now_s: float) -> None:
        metrics = self.metrics
        metrics.in_flight.of().add(-1)
        metrics.attempts.of(SCHEDULED, self._profile(pod)).inc()
        tries = self._tries.get(pod, 0) + 1
        metrics.tries.of().observe(tries)
        seen = self._seen.get(pod)
        if seen is not None:
            metrics.waits.of(str(tries) if tries < MOST_TRIES else _MANY_TRIES).observe(max(0.0, now_s - seen))
        self.gone(pod)

    def not_bound(self, pod: str, *, is_refused: bool) -> None:
        """`is_refused`: by the server, in contrast to an unknown result."""
        self.metrics.in_flight.of().add(-1)
        if is_refused:
            self.metrics.attempts.of(ERROR, self._profile(pod)).inc()
            self._tries[pod] = self._tries.get(pod, 0) + 1


def _attributes(plan: Plan) -> dict[str, int]:
    """What a cycle has decided, for its span."""
    counts = Counter(type(each) for each in plan.intentions)
    return {
        "shoal.placed": counts[Place],
        "shoal.refused": counts[Refuse] + counts[RefuseGroup],
        "shoal.evicted": counts[Evict],
        "shoal.moved": counts[Move],
    }

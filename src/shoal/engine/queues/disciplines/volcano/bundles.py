"""Sorts the pods that could yield in a domain into bundles: what a job can spare, and whole jobs.

A safe bundle is one pod above the minimum of its job. A whole bundle is all that is left of a job: it goes when no pod
above the minimum is left, and only where the configuration allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.engine.queues.disciplines.volcano.amounts import Figures, add, holds
from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Session

Select = Callable[[Sequence[PodOfJob]], list[PodOfJob]]
"""Those of the candidates that the plugins let go."""


class Bundle(msgspec.Struct, frozen=True):
    """Pods that go together."""

    pods: tuple[PodOfJob, ...]
    is_whole: bool = False


def bundles_of(session: Session, victims: Sequence[PodOfJob], *, takes_whole: bool) -> list[Bundle]:
    """In the order in which they go: safe bundles first, then whole jobs. `victims`: pods in the domain, in order."""
    spare: dict[str, int] = {}
    safe: list[Bundle] = []
    cores: dict[str, list[PodOfJob]] = {}
    for pod in victims:
        job = session.jobs[pod.job]
        left = spare.setdefault(pod.job, len(job.ready) - job.minimum)
        if left > 0:
            spare[pod.job] -= 1
            safe.append(Bundle((pod,)))
        else:
            cores.setdefault(pod.job, []).append(pod)
    if not takes_whole:
        return safe
    whole: list[Bundle] = []
    gone = {pod.key for bundle in safe for pod in bundle.pods}
    for name in cores:
        rest = _rest_of(session, name, gone)
        if rest:
            whole.append(Bundle(tuple(rest), is_whole=True))
    return [*safe, *whole]


def within_guarantees(session: Session, bundles: Sequence[Bundle], queue: str) -> list[Bundle]:
    """Without the bundles that would leave a queue, or an ancestor of it, less than its guarantee, if all before go.

    What they hold passes to `queue`, so that the ancestors of both lose nothing."""
    shared = set(session.forest.path(queue))
    guaranteed = {name for name, each in session.forest.queues.items() if each.guarantee} - shared
    if not guaranteed:
        return list(bundles)
    left: dict[str, dict[str, float]] = {}
    found: list[Bundle] = []
    for bundle in bundles:
        after: dict[str, dict[str, float]] = {}
        for pod in bundle.pods:
            for name in session.forest.path(session.jobs[pod.job].queue):
                if name in guaranteed:
                    known = left.get(name) or session.accounts.allocated(name)
                    add(after.setdefault(name, dict(known)), pod.amounts, -1)
        if all(_has_guarantee(session, name, amounts) for name, amounts in after.items()):
            left |= after
            found.append(bundle)
    return found


def _has_guarantee(session: Session, name: str, amounts: Figures) -> bool:
    return holds(amounts, session.forest.queues[name].guarantee)


def _rest_of(session: Session, name: str, gone: set[str]) -> list[PodOfJob]:
    """All pods of the job that are left, also those outside the domain; none where one of them may not be evicted."""
    job = session.jobs[name]
    rest = [pod for pod in job.ready.values() if pod.key not in gone]
    if not all(pod.is_preemptible for pod in rest):
        return []
    # Trials change the order in which the job lists its pods.
    return sorted(rest, key=session.task_key, reverse=True) if len(rest) > 1 else rest

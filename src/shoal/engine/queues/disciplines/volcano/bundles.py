"""Sorts the pods that could yield in a domain into bundles: what a job can spare, and whole jobs.

A safe bundle is one pod above the minimum of its job. A whole bundle is all that is left of a job: it goes when no pod
above the minimum is left, and only where the configuration allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Session

Select = Callable[[Sequence[PodOfJob]], list[PodOfJob]]
"""Those of the candidates that the plugins let go."""


class Bundle(msgspec.Struct, frozen=True):
    """Pods that go together."""

    pods: tuple[PodOfJob, ...]
    is_whole: bool = False


def bundles_of(session: Session, candidates: Sequence[PodOfJob], queue: str, *, takes_whole: bool) -> list[Bundle]:
    """In the order in which they go: safe bundles first, then whole jobs. `candidates`: pods in the domain."""
    ordered = session.in_victim_order(candidates, queue)
    spare: dict[str, int] = {}
    safe: list[Bundle] = []
    cores: dict[str, list[PodOfJob]] = {}
    for pod in ordered:
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
    for name in cores:
        rest = _rest_of(session, name, {pod.key for bundle in safe for pod in bundle.pods})
        if rest:
            whole.append(Bundle(tuple(rest), is_whole=True))
    return [*safe, *whole]


def _rest_of(session: Session, name: str, gone: set[str]) -> list[PodOfJob]:
    """All pods of the job that are left, also those outside the domain; none where one of them may not be evicted."""
    job = session.jobs[name]
    rest = [pod for pod in job.ready.values() if pod.key not in gone]
    return rest if all(pod.is_preemptible for pod in rest) else []

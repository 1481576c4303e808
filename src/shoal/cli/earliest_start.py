"""Computes the earliest start of a waiting pod or workload from the known end times of others.

A pod is known to end where its owner said how long it takes (`shoal.dev/expected-duration`) or may take
(`activeDeadlineSeconds`). The search goes through those ends in order until there is capacity. A workload before it in
the queue may take that capacity first, hence "at the earliest". For workloads the queues run on in virtual time.

Rejected: guessing from how long others have taken. A time that looks exact and is not is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from shoal.api.decode import Document
from shoal.api.pod import Pod
from shoal.cli.manifests import Loaded, loaded_of, rounds_of
from shoal.engine.cycle_state import Step
from shoal.engine.events import PodGone
from shoal.engine.from_api.queues.expected import expected_s
from shoal.sim.explain import Explainer
from shoal.sim.queue_future import future_of
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.queued_pods import speaks_of_queues
from shoal.store.inventory import Inventory
from shoal.units.errors import UserError, Where

GoOn = Callable[[], bool]
_MOST_WORKLOADS = 1_000
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


def earliest_words(
    documents: Sequence[Document], seed: int, key: str, go_on: GoOn, *, steps: Sequence[Step] | None = None
) -> str:
    """Empty where nothing is known. `steps`: those of a round, where they are not the default ones."""
    ends = _known_ends(documents)
    if not ends and not speaks_of_queues(Inventory(documents)):
        return ""
    loaded = loaded_of(documents)
    rounds = rounds_of(loaded, seed, steps=steps)
    if isinstance(rounds, QueueRounds) and key in rounds.workloads:
        return _of_workload(rounds, key) if len(rounds.workloads) <= _MOST_WORKLOADS else ""
    if not ends:
        return ""
    return _of_pods(loaded, seed, key, ends, go_on)


def _of_workload(rounds: QueueRounds, key: str) -> str:
    begins_s = rounds.now_s
    after_s = future_of(rounds).starts.get(key)
    if after_s is None or after_s == 0:
        return ""
    return f"in about {_length(after_s)} ({_moment(begins_s + after_s)}), if those before it take as long as expected"


def _of_pods(loaded: Loaded, seed: int, key: str, ends: Sequence[tuple[float, str]], go_on: GoOn) -> str:
    begins_s = loaded.now_s
    for at, (end_s, pod) in enumerate(ends):
        if pod not in loaded.cluster.pods or not go_on():
            continue
        loaded.intake.apply(PodGone(pod))
        is_last_of_moment = at + 1 == len(ends) or ends[at + 1][0] > end_s
        if is_last_of_moment and _fits(loaded, seed, key):
            after_s = max(0.0, end_s - begins_s)
            return f"in about {_length(after_s)} ({_moment(max(end_s, begins_s))}), when {pod} has ended"
    return ""


def _fits(loaded: Loaded, seed: int, key: str) -> bool:
    cluster = loaded.cluster
    explainer = Explainer(loaded.placement, seed, loaded.now_s)
    gang = cluster.gangs.find(key)
    if gang is not None and gang.waiting:
        evidence = explainer.gang_evidence(key)
        return 0 < evidence.needs <= evidence.fit_now
    return key in cluster.pending and explainer.evidence(key).fitting > 0


def _known_ends(documents: Sequence[Document]) -> list[tuple[float, str]]:
    """The soonest first."""
    found = []
    for document in documents:
        pod = document.value
        if not isinstance(pod, Pod) or not pod.spec.node_name or pod.is_finished():
            continue
        since = pod.status.start_time or pod.metadata.creation_timestamp
        try:
            length_s = expected_s(pod.metadata.annotations, Where())
        except UserError:
            length_s = None
        limit_s = pod.spec.active_deadline_seconds
        known = [float(each) for each in (length_s, limit_s) if each is not None]
        if since is not None and known:
            found.append((since.timestamp() + min(known), pod.metadata.key))
    return sorted(found)


def _length(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return "a minute"
    if seconds < 2 * _HOUR_S:
        return f"{round(seconds / _MINUTE_S):,} min"
    if seconds < 2 * _DAY_S:
        return f"{round(seconds / _HOUR_S):,} h"
    return f"{round(seconds / _DAY_S):,} days"


def _moment(seconds: float) -> str:
    return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M UTC")

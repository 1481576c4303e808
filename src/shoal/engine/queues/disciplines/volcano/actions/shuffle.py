"""The action `shuffle`: evicts the pods that plugins name, for no other pod."""

from __future__ import annotations

from shoal.engine.plan import Evict
from shoal.engine.queues.disciplines.volcano.session import Session


def shuffle(session: Session) -> None:
    named = {pod.key: pod for plugin in session.having("Victim") for pod in plugin.to_shuffle()}
    for pod in session.within_budgets(list(named.values())):
        session.state.ledger.mark_terminating(pod.key)
        session.state.intentions.append(Evict(pod.key, ""))
        session.note_evicted(pod)

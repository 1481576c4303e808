"""Handles changes of queues and Workloads: puts them into the workload cache and follows each Workload's lifecycle.

What a watch cache says about a Workload while a decision about it is being written is out of date and is ignored: the
cache reports the Workload again once the write has finished.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from shoal.controllers.queues.disruption_facts import DisruptionFacts
from shoal.controllers.queues.node_capacity import NodeCapacity
from shoal.controllers.queues.workload_cache import WorkloadCache, is_quota_unchanged
from shoal.controllers.queues.workload_lifecycle import WorkloadLifecycle
from shoal.controllers.queues.workload_status.status_reports import StatusReports
from shoal.engine.queues.facts import LocalQueueFacts, WorkloadFacts
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact
from shoal.store.watched.queue_changes import QueueChanges, WorkloadView

_log = logging.getLogger("shoal.queues")


class EventHandlers:
    def __init__(
        self, cache: WorkloadCache, capacity: NodeCapacity, reports: StatusReports, disruption_facts: DisruptionFacts
    ) -> None:
        self._cache = cache
        self._capacity = capacity
        self._reports = reports
        self._disruption_facts = disruption_facts
        self._lifecycle = WorkloadLifecycle(reports)
        self._refused: dict[str, tuple[int, str]] = {}
        """Workloads whose status the server refused: at which generation, and its message."""

    def handle(self, news: QueueChanges, now_s: float) -> list[str]:
        """Returns the Workloads that could not be handled; the caller has them reported again."""
        cache = self._cache
        failed: list[str] = []
        if news.settings is not None and news.settings != cache.queues.settings:
            failed += self._reset(news.settings, now_s)
        queues = cache.queues
        for fact in _with_known_usage(news.facts, queues.local_queues):
            queues.put(fact)
        for kind, name in news.dropped:
            queues.drop(kind, name)
        for name, labels in news.namespaces:
            queues.put_namespace(name, labels)
        if news.cost_budgets is not None:
            queues.put_cost_budgets(news.cost_budgets)
        if queues.is_stale:
            queues.refresh()
            cache.is_upkeep_due = cache.is_cycle_due = True
            # The reason for which a Workload is in no queue may have changed.
            cache.unreported.update(dict.fromkeys(cache.views))
            for view in cache.views.values():
                self._reconcile(view, now_s)
        for key in self._lifecycle.due(now_s):
            if (due := cache.views.get(key)) is not None:
                self._reconcile(due, now_s)
        for key in news.gone:
            self._forget(key, now_s)
        for view in news.workloads:
            try:
                self._handle_workload(view, now_s)
            except Exception:  # noqa: BLE001 - a Workload that the code cannot handle must not delay the others
                _log.exception("workload %s could not be handled", view.key)
                failed.append(view.key)
        return failed

    def next_s(self) -> float | None:
        return self._lifecycle.next_s()

    def note_refused(self, workload: str, message: str) -> None:
        """The server refused a write to the Workload: it stays pending until its specification changes."""
        view = self._cache.views.get(workload)
        if view is not None:
            self._refused[workload] = view.generation, message

    # internals

    def _reset(self, settings: Settings, now_s: float) -> list[str]:
        """Begin with another configuration: every Workload is queued again, and each that holds quota keeps it. The
        caches report all other facts again. Returns the Workloads that could not be queued."""
        cache, failed = self._cache, list[str]()
        # The views of these Workloads do not show yet what they hold.
        holding = {key: held.facts for key, held in cache.queues.held.items()}
        holding |= {key: facts for key, (facts, _) in cache.queues.unqueued.items()}
        decided = {key: facts for key, facts in holding.items() if cache.is_outdated(key)}
        cache.reset(settings)
        self._capacity.reset()
        for view in cache.views.values():
            facts = decided.get(view.key, view.facts)
            try:
                if facts is not None and view.is_finished:
                    self._finish(view, now_s)
                elif facts is not None:
                    cache.kueue.put_workload(self._completed(view, facts), now_s)
            except Exception:  # noqa: BLE001 - a Workload that the code cannot handle must not keep the others out
                _log.exception("workload %s could not be queued again", view.key)
                failed.append(view.key)
        return failed

    def _forget(self, key: str, now_s: float) -> None:
        cache = self._cache
        cache.writer.forget(key)
        cache.views.pop(key, None)
        cache.unreported.pop(key, None)
        self._refused.pop(key, None)
        self._lifecycle.forget(key)
        self._capacity.forget(key)
        cache.kueue.drop_workload(key, now_s)

    def _handle_workload(self, view: WorkloadView, now_s: float) -> None:
        cache, key = self._cache, view.key
        cache.views[key] = view
        if view.is_finished:
            self._finish(view, now_s)
            return
        if view.facts is None:
            cache.kueue.drop_workload(key, now_s)
            if view.fault:
                self._reports.pending(view, None, (Wait.MISCONFIGURED, view.fault))
            return
        if cache.is_outdated(key):
            return
        if view.is_terminating and view.facts.admission is None:
            cache.kueue.drop_workload(key, now_s)
            return
        self._put(self._completed(view, view.facts), now_s)
        self._reconcile(view, now_s)

    def _finish(self, view: WorkloadView, now_s: float) -> None:
        self._capacity.release(view.key)
        if (replacement := self._capacity.arrivals.replacement(view.key)) != view.key:
            # The places kept for it belong to its replacement.
            self._capacity.want(replacement)
        self._cache.unreported.pop(view.key, None)
        kueue = self._cache.kueue
        if view.facts is not None and view.ran_s is not None:
            # The Workload itself records how long it ran, so another process learns the same from it.
            kueue.durations.learn(view.facts, view.ran_s)
        kueue.drop_workload(view.key, now_s)

    def _completed(self, view: WorkloadView, facts: WorkloadFacts) -> WorkloadFacts:
        """The facts with what only a live cluster tells: without a PodsReady condition the pods are not ready yet."""
        if self._cache.queues.settings.wait_for_pods_ready and facts.admitted and "PodsReady" not in view.marks:
            facts = structs.replace(facts, pods_ready=False)
        generation, message = self._refused.get(view.key, (-1, ""))
        return structs.replace(facts, fault=message) if message and generation == view.generation else facts

    def _assign_pods(self, facts: WorkloadFacts) -> None:
        """Give the pods of an elastic job to the Workload under which it runs now."""
        arrivals = self._capacity.arrivals
        if facts.admission is not None:
            if self._cache.queues.replacements.has_place(facts):
                arrivals.replace(facts.replaces, facts.key)
        elif arrivals.replacement(facts.replaces) == facts.key and self._cache.held(facts.replaces) is not None:
            # The replacement lost its quota, and the job goes on under the earlier Workload.
            arrivals.replace(facts.key, facts.replaces)

    def _put(self, facts: WorkloadFacts, now_s: float) -> None:
        cache = self._cache
        held = cache.held(facts.key)
        cache.is_upkeep_due = True
        self._disruption_facts.mark_changed(facts.key)
        self._capacity.replacements.mark_changed(facts.key)
        if held is not None and is_quota_unchanged(held, facts):
            # Unchanged quota frees nothing, so no other Workload has to be considered again.
            was_ready = held.facts.pods_ready
            held.facts = structs.replace(facts, admission=held.admission)
            if held.facts.pods_ready != was_ready and cache.queues.settings.block_admission:
                cache.kueue.wake()
        else:
            if held is not None and facts.admission is None and held.facts == facts:
                # It was admitted in a round that failed: the admission was not written and never will be.
                cache.kueue.drop_workload(facts.key, now_s)
            cache.kueue.put_workload(facts, now_s)
        if facts.replaces:
            self._assign_pods(facts)
        if facts.admission is None or facts.evicted_s is not None:
            self._capacity.release(facts.key)
            if facts.admission is None:
                self._capacity.arrivals.end_admission(facts.key)
                cache.unreported[facts.key] = None
        elif facts.admitted and held is None:
            # If pods are missing, one of their places may have to be kept for longer than those of pods still to come.
            mark = cache.views[facts.key].mark("PodsReady")
            self._capacity.want(facts.key, 0.0 if mark.is_true else mark.since_s)

    def _reconcile(self, view: WorkloadView, now_s: float) -> None:
        facts = view.facts
        if facts is None or self._cache.is_outdated(view.key):
            return
        if self._lifecycle.reconcile(self._cache.queues, view, facts, now_s) and facts.admission is not None:
            self._capacity.want(view.key)


def _with_known_usage(facts: Iterable[Fact], known: Mapping[str, LocalQueueFacts]) -> Iterator[Fact]:
    """The facts, but with the recent usage of local queues as it is known here: what their statuses say about it was
    written by this process earlier. The status of a queue that is new here is believed."""
    for fact in facts:
        before = known.get(fact.key) if isinstance(fact, LocalQueueFacts) else None
        if isinstance(fact, LocalQueueFacts) and before is not None:
            yield structs.replace(fact, used=before.used, consumed=before.consumed, used_s=before.used_s)
        else:
            yield fact

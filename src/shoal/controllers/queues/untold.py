"""Says why they wait to those whom no cycle looked at: they stand in no line, or behind others of their form."""

from __future__ import annotations

from shoal.controllers.queues.book import Book
from shoal.controllers.queues.telling import Telling
from shoal.controllers.queues.words import why_no_line
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.reasons import Wait

_MOST = 256
"""In one round."""
_OUTDATED = frozenset({"Misconfigured", "Suspended"})


def tell_the_untold(book: Book, telling: Telling) -> None:
    for key in list(book.untold)[:_MOST]:
        del book.untold[key]
        sight = book.sights.get(key)
        if sight is None or sight.facts is None or sight.facts.admission is not None:
            continue
        if book.held(key) is not None or book.is_deciding(key):
            continue
        told = why_no_line(book.queues, sight.facts) or _told_in_line(book, sight.facts)
        if told is not None:
            telling.waits(sight, sight.facts, told)


def _told_in_line(book: Book, facts: WorkloadFacts) -> tuple[str, str] | None:
    told = book.kueue.told_of(facts.key)
    if told is not None:
        return str(told[0]), told[1]
    sight = book.sights[facts.key]
    if "QuotaReserved" in sight.marks and sight.mark("QuotaReserved").reason not in _OUTDATED:
        return None
    return str(Wait.PENDING), "Workload is pending evaluation in the scheduling queue"

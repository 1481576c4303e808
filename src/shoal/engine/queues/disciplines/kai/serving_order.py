"""Walks waiting jobs in the order in which they would be served, as far as one claimant: who would go before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from shoal.engine.queues.disciplines.kai.fair_jobs import FairJob
from shoal.engine.queues.disciplines.kai.fair_queues import QueueNode
from shoal.engine.queues.disciplines.kai.queue_order import QueueKey, queue_key

Line = list[FairJob]


class ServingOrder:
    """The waiting jobs of all queues, each line sorted once."""

    def __init__(self, jobs: Iterable[FairJob]) -> None:
        self._lines: dict[QueueNode, Line] = {}
        for job in jobs:
            self._lines.setdefault(job.leaf, []).append(job)
        for line in self._lines.values():
            line.sort(key=FairJob.order)
        self._served: dict[QueueNode, int] = {}
        """How many jobs at the head of a line need nothing more in this step of the cycle."""

    def before(self, claimant: FairJob, others: Iterable[FairJob]) -> Iterator[FairJob]:
        """The jobs that are served before the claimant, if others wait as well. The caller may place each before it
        asks for the next."""
        more = _by_leaf(others)
        lines = {leaf: self._line(leaf, more.get(leaf, [])) for leaf in {**self._lines, **more}}
        heads: dict[QueueNode, FairJob] = {}
        children: dict[QueueNode | None, list[QueueNode]] = {}
        for leaf, walk in lines.items():
            _advance(leaf, walk, heads)
            if leaf in heads:
                for node in leaf.path:
                    siblings = children.setdefault(node.parent, [])
                    if node not in siblings:
                        siblings.append(node)
        keys: dict[QueueNode, QueueKey] = {}
        while (found := _first(children, heads, keys)) is not None and found is not claimant:
            yield found
            leaf = found.leaf
            del heads[leaf]
            _advance(leaf, lines[leaf], heads)
            for node in leaf.path:
                keys.pop(node, None)
            if leaf not in heads:
                _drop(leaf, children)

    def _line(self, leaf: QueueNode, others: Line) -> Iterator[FairJob]:
        line = self._lines.get(leaf, [])
        start = self._served.get(leaf, 0)
        while start < len(line) and not line[start].step:
            start += 1
        self._served[leaf] = start
        waiting = islice(line, start, None)
        return _merged(waiting, others) if others else waiting


def _by_leaf(jobs: Iterable[FairJob]) -> dict[QueueNode, Line]:
    lines: dict[QueueNode, Line] = {}
    for job in jobs:
        lines.setdefault(job.leaf, []).append(job)
    return lines


def _merged(line: Iterable[FairJob], more: Line) -> Iterator[FairJob]:
    """Both in order, each job once."""
    extra = sorted(more, key=FairJob.order)
    seen = set(extra)
    at = 0
    for job in line:
        if job in seen:
            continue
        while at < len(extra) and extra[at].order() < job.order():
            yield extra[at]
            at += 1
        yield job
    yield from extra[at:]


def _advance(leaf: QueueNode, walk: Iterator[FairJob], heads: dict[QueueNode, FairJob]) -> None:
    job = next((job for job in walk if job.step), None)
    if job is not None:
        heads[leaf] = job


def _first(
    children: dict[QueueNode | None, list[QueueNode]], heads: dict[QueueNode, FairJob], keys: dict[QueueNode, QueueKey]
) -> FairJob | None:
    def best(node: QueueNode) -> FairJob:
        at = node
        while siblings := children.get(at):
            at = siblings[0] if len(siblings) == 1 else min(siblings, key=key)
        return heads[at]

    def key(node: QueueNode) -> QueueKey:
        known = keys.get(node)
        if known is None:
            known = keys[node] = queue_key(node, best(node).step_amounts)
        return known

    tops = children.get(None)
    if not tops:
        return None
    return best(tops[0] if len(tops) == 1 else min(tops, key=key))


def _drop(node: QueueNode, children: dict[QueueNode | None, list[QueueNode]]) -> None:
    """No job is left in a queue."""
    for each in node.path:
        children[each.parent].remove(each)
        if children[each.parent]:
            return

"""Pods of groups that were let in go on as far as their queues' capabilities allow, whoever has waited longest first.

A capability holds here a second time: between the moment a group was let in and the moment its pods are placed others
may have come, and groups that name no least were let in unasked. A gang goes whole up to its minimum or not at all. One
that was let go and found no nodes gives its room back after a while, when others of its queue wait for it.
"""

from __future__ import annotations

from collections.abc import Container

from shoal.controllers.brain.parts import Holder
from shoal.controllers.volcano.agenda import Agenda
from shoal.controllers.volcano.group_book import GroupBook
from shoal.controllers.volcano.group_room import choose
from shoal.controllers.volcano.group_view import GroupView
from shoal.controllers.volcano.queue_tree import QueueTree

PATIENCE_S = 10.0
"""How long a group may look for nodes while others wait for the room it takes of its queue."""


class LettingGo:
    def __init__(self, brain: Holder, view: GroupView, book: GroupBook, agenda: Agenda) -> None:
        self._brain = brain
        self._view = view
        self._book = book
        self._agenda = agenda

    def run(self, tree: QueueTree, names: Container[str], now_s: float) -> None:
        """Of the groups `names`."""
        book = self._book
        usage = book.room.usage(tree) if tree.has_limits else {}
        stuck: set[str] = set()
        for name, group in book.turns():
            if name not in names:
                continue
            pods = [pod for key in book.kept.of(name) if (pod := self._view.pod(key)) is not None]
            there = len(tuple(book.room.pods(name)))
            chosen, refusal = choose(tree, group, pods, there, usage)
            for pod in chosen:
                book.hold("/".join(pod.metadata.key), now_s)
            if refusal is not None:
                stuck.update(queue.name for queue in tree.upwards(group.queue))
        if stuck:
            self.recall(tree, stuck, now_s)

    def recall(self, tree: QueueTree, stuck: Container[str], now_s: float) -> None:
        """Groups that hold room of these queues and have no node yet go back behind those that wait."""
        book, pending = self._book, self._brain.cluster.pending
        for group in book.room.groups():
            released_s = book.released_s.get(group)
            if released_s is None or all(one.name not in stuck for one in tree.upwards(book.queue_of(group))):
                continue
            if not all(pod in pending for pod in book.room.pods(group)):
                continue
            if now_s < released_s + PATIENCE_S:
                self._agenda.look_at(released_s + PATIENCE_S)
                continue
            book.take_back(group)
            self._agenda.is_due = True

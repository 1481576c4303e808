"""KAI's division of a tree of queues, and its minimum runtimes, in the plainest way: dictionaries and fractions."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from random import Random


@dataclass
class PlainQueue:
    name: str
    parent: str
    age: int
    quota: int | None
    limit: int | None
    weight: int
    priority: int
    usage: Fraction
    preempt_s: float | None
    reclaim_s: float | None
    requested: int = 0
    """Of a leaf; that of others is the sum of their leaves."""

    @property
    def most(self) -> int:
        return self.requested if self.limit is None else min(self.requested, self.limit)


@dataclass
class PlainTree:
    queues: dict[str, PlainQueue] = field(default_factory=dict)

    def children(self, name: str) -> list[PlainQueue]:
        return [queue for queue in self.queues.values() if queue.parent == name]

    def path(self, name: str) -> list[str]:
        """The queue, its parent, and so on."""
        found = []
        while name:
            found.append(name)
            name = self.queues[name].parent
        return found

    def leaves(self) -> list[str]:
        return [name for name in self.queues if not self.children(name)]

    def shares(self, total: int, unit: int, k: Fraction) -> dict[str, int]:
        """The fair share of every queue: children divide the share of their parent."""
        found: dict[str, int] = {}
        above = [("", total)]
        while above:
            parent, amount = above.pop()
            found |= (mine := divided(self.children(parent), amount, unit, k))
            above += mine.items()
        return found

    def preempt_s(self, victim: str) -> float:
        """The nearest value on the way up from the victim."""
        return next((s for name in self.path(victim) if (s := self.queues[name].preempt_s) is not None), 0.0)

    def reclaim_s(self, claimant: str, victim: str) -> float:
        """From the victim's ancestor just below the lowest common one, upwards."""
        mine = set(self.path(claimant))
        below = [name for name in self.path(victim) if name not in mine]
        return next((s for name in self.path(below[-1]) if (s := self.queues[name].reclaim_s) is not None), 0.0)

    def reclaim_of_victim_s(self, victim: str) -> float:
        return next((s for name in self.path(victim) if (s := self.queues[name].reclaim_s) is not None), 0.0)


def divided(queues: list[PlainQueue], amount: int, unit: int, k: Fraction) -> dict[str, int]:
    share = {queue.name: min(amount if queue.quota is None else queue.quota, queue.most) for queue in queues}
    left = max(0, amount - sum(share.values()))
    withheld_of_bands = []
    for priority in sorted({queue.priority for queue in queues}, reverse=True):
        withheld: dict[str, Fraction] = {}
        while left > 0:
            wanting = [
                queue for queue in queues
                if queue.priority == priority and queue.weight and share[queue.name] < queue.most
            ]  # fmt: skip
            whole = sum(queue.weight for queue in wanting)
            normal = {queue.name: Fraction(queue.weight, whole) for queue in wanting}
            corrected = {
                queue.name: max(Fraction(0), normal[queue.name] + k * (normal[queue.name] - queue.usage))
                for queue in wanting
            }
            sum_of_weights = sum(corrected.values())
            if not sum_of_weights:
                break
            wanted_less, given = False, 0
            for queue in wanting:
                part, wish = left * corrected[queue.name] / sum_of_weights, queue.most - share[queue.name]
                if not corrected[queue.name]:
                    continue
                if wish <= part:
                    more, wanted_less = wish, wanted_less or wish < part
                    withheld.pop(queue.name, None)
                else:
                    more = part // unit * unit
                    withheld[queue.name] = part - more
                share[queue.name] += more
                given += more
            left -= given
            if not wanted_less:
                break
        withheld_of_bands.append(withheld)
    by_name = {queue.name: queue for queue in queues}
    for withheld in withheld_of_bands:
        for name in sorted(withheld, key=lambda name: (-withheld[name], by_name[name].age, name)):
            more = min(unit, left, by_name[name].most - share[name])
            share[name] += more
            left -= more
    return share


def drawn_tree(draw: Random, levels: int, *, most: int = 24) -> PlainTree:
    """A tree in which some leaf is so many levels deep."""
    tree = PlainTree()

    def add(parent: str, depth: int) -> None:
        name = f"q{len(tree.queues)}"
        tree.queues[name] = PlainQueue(
            name,
            parent,
            len(tree.queues),
            quota=draw.choice([None, 0, 0, draw.randrange(most)]),
            limit=draw.choice([None, None, draw.randrange(most)]),
            weight=draw.choice([0, 1, 1, 2, 3]),
            priority=draw.choice([100, 100, 200]),
            usage=Fraction(draw.randrange(5), 4),
            preempt_s=draw.choice([None, None, float(draw.randrange(100))]),
            reclaim_s=draw.choice([None, None, float(draw.randrange(100))]),
        )
        if depth < levels:
            for at in range(draw.choice([1, 2, 3]) if depth == 1 else draw.choice([0, 1, 2, 3])):
                add(name, depth + 1) if at or depth + 1 < levels or draw.random() < 0.9 else None

    while not tree.queues or max(len(tree.path(name)) for name in tree.queues) < levels:
        add("", 1)
    for name in tree.leaves():
        wanted = draw.randrange(most)
        for each in tree.path(name):
            tree.queues[each].requested += wanted
    return tree

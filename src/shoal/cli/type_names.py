"""The names of the types that `shoal get` lists, in the order of its help."""

from __future__ import annotations

from typing import NamedTuple


class TypeNames(NamedTuple):
    plural: str
    singular: str
    short: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return self.plural, self.singular, *self.short


PODS = TypeNames("pods", "pod", ("po",))
GANGS = TypeNames("gangs", "gang", ("podgroups", "podgroup", "pg"))
QUEUES = TypeNames("queues", "queue", ("localqueues", "localqueue", "lq", "q"))
WORKLOADS = TypeNames("workloads", "workload", ("wl",))
NODES = TypeNames("nodes", "node", ("no",))
TYPE_NAMES = (PODS, GANGS, QUEUES, WORKLOADS, NODES)

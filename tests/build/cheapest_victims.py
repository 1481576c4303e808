"""The least price at which whole GPUs can be had, by a solver: the oracle of preemption.

Written from the rules, not from the engine: who may yield, what must yield together, how many a budget allows, how many
pods each node then takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

COUNT = 1000
"""One victim more is worse than any priority; one level more is worse than any number of victims."""
LEVEL = 1_000_000


@dataclass(frozen=True)
class Running:
    name: str
    node: int
    gpus: int
    priority: int
    gang: str = ""
    is_preemptible: bool = True


@dataclass(frozen=True)
class FullFleet:
    """Nodes with so many GPUs, all facts that matter for who yields."""

    nodes: tuple[int, ...]
    pods: tuple[Running, ...]
    least: dict[str, int]
    budgets: tuple[tuple[int, frozenset[str]], ...]

    def priority(self, pod: Running) -> int:
        """A gang has that of its highest pod."""
        if not pod.gang:
            return pod.priority
        return max(other.priority for other in self.pods if other.gang == pod.gang)

    def price(self, victims: frozenset[str]) -> int:
        yielding = [pod for pod in self.pods if pod.name in victims]
        top = max((self.priority(pod) for pod in yielding), default=-1)
        return (top + 1) * LEVEL + sum(COUNT + self.priority(pod) for pod in yielding)

    def may_yield(self, victims: frozenset[str], priority: int) -> bool:
        yielding = [pod for pod in self.pods if pod.name in victims]
        if any(not pod.is_preemptible or self.priority(pod) >= priority for pod in yielding):
            return False
        if any(len(victims & covered) > allowed for allowed, covered in self.budgets):
            return False
        for gang, least in self.least.items():
            members = [pod for pod in self.pods if pod.gang == gang]
            gone = sum(pod.name in victims for pod in members)
            if gone not in (0, len(members)) and len(members) - gone < least:
                return False
        return True

    def slots(self, victims: frozenset[str], gpus: int) -> int:
        free = list(self.nodes)
        for pod in self.pods:
            if pod.name not in victims:
                free[pod.node] -= pod.gpus
        return sum(left // gpus for left in free)


def least_price(fleet: FullFleet, count: int, gpus: int, priority: int) -> int | None:
    """What `count` pods of `gpus` each must cost at least; None when there is no way."""
    model = cp_model.CpModel()
    goes = {pod.name: model.new_bool_var(pod.name) for pod in fleet.pods}
    top = model.new_int_var(0, 100, "top")
    for pod in fleet.pods:
        if not pod.is_preemptible or fleet.priority(pod) >= priority:
            model.add(goes[pod.name] == 0)
        model.add(top >= (fleet.priority(pod) + 1) * goes[pod.name])
    for gang, least in fleet.least.items():
        members = [goes[pod.name] for pod in fleet.pods if pod.gang == gang]
        if not members:
            continue
        whole = model.new_bool_var(f"{gang} whole")
        model.add(sum(members) == len(members)).only_enforce_if(whole)
        model.add(sum(members) <= max(len(members) - least, 0)).only_enforce_if(~whole)
    for allowed, covered in fleet.budgets:
        model.add(sum(goes[name] for name in sorted(covered)) <= allowed)
    slots = []
    for node, total in enumerate(fleet.nodes):
        here = [pod for pod in fleet.pods if pod.node == node]
        slots.append(model.new_int_var(0, total, f"slots {node}"))
        model.add(gpus * slots[-1] <= total - sum(pod.gpus * (1 - goes[pod.name]) for pod in here))
    model.add(sum(slots) >= count)
    model.minimize(LEVEL * top + sum((COUNT + fleet.priority(pod)) * goes[pod.name] for pod in fleet.pods))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL
    return round(solver.objective_value)

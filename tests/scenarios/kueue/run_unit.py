"""A case about one component: which one, told by the facts that only it is given."""

from __future__ import annotations

from collections.abc import Callable

from . import flavors, line, places, sums, victims
from .answers import Answer
from .case import Case

Component = Callable[[Case], Answer]


def decide(case: Case) -> Answer:
    return component_of(case)(case)


def component_of(case: Case) -> Component:
    if case.candidates:
        return line.order_of_cycle
    if case.assignment_given or case.feature.startswith("preemption"):
        return victims.decide
    if case.preemption_oracle is not None:
        return flavors.decide
    if case.feature == "queue-ordering":
        return line.order_in_line
    if case.extra_request or not case.pending:
        return places.replaced if any(each.unhealthy_nodes for each in case.admitted) else sums.decide
    if case.topologies:
        return places.decide
    return line.order_in_line

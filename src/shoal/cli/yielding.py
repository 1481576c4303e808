"""Who may be made to yield or to move, as the options of a command say it: the steps of each round."""

from __future__ import annotations

import difflib

from shoal.engine.preemption.policy import Order, VictimPolicy
from shoal.engine.round import Step
from shoal.engine.steps.allocate import allocate
from shoal.engine.steps.consolidate import consolidate
from shoal.engine.steps.preempt import preempt
from shoal.units.errors import UserError, Where, excerpt


def steps_of(victims: str, min_runtime_s: float, *, break_budgets: bool, no_moves: bool) -> tuple[Step, ...]:
    """The steps of a round under these options."""
    policy = VictimPolicy(_order(victims), min_runtime_s, break_budgets)
    moves = () if no_moves else (consolidate(policy),)
    return (allocate, *moves, preempt(policy))


def _order(name: str) -> Order:
    try:
        return Order(name)
    except ValueError as error:
        near = difflib.get_close_matches(name, list(Order), 1)
        fix = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(Order)}"
        raise UserError(f"no order is called {excerpt(name)}", where=Where(path="--victims"), fix=fix) from error

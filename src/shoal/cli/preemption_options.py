"""Converts the options of a command about preemption and moves to scheduling steps and to settings of the queues.

The options for the minimal run time and for disruption budgets hold for workloads and for pods. The order of victims
holds for pods alone: queues use Kueue's order.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from contextlib import suppress

from msgspec.structs import replace

from shoal.api.decode import Document, Unknown, convert
from shoal.api.run_configuration import RUN_KIND, FreeingStep, PreemptionRules, RunConfiguration
from shoal.engine.cycle_state import Step
from shoal.engine.preemption.policy import Order, VictimPolicy
from shoal.engine.queues.settings import Settings
from shoal.engine.steps.allocate import allocate
from shoal.engine.steps.consolidate import consolidate
from shoal.engine.steps.held_back import HeldBack
from shoal.engine.steps.preempt import preempt
from shoal.units.errors import UserError, Where, excerpt


def steps_of(victims: str, min_runtime_s: float, *, break_budgets: bool, no_moves: bool) -> tuple[Step, ...]:
    """The steps of a round under these options."""
    policy = VictimPolicy(order_of(victims), min_runtime_s, break_budgets)
    moves = () if no_moves else (consolidate(policy),)
    return (allocate, *moves, preempt(policy))


def steps_of_rules(own: RunConfiguration) -> tuple[Step, ...]:
    """The steps of a round as `shoal run` does them under its configuration. The default one is that of a cluster whose
    configuration is not known. Steps that do not come before provisioning wait for it."""
    rules, scaling = own.preemption, own.node_scaling
    policy = policy_of_rules(rules)
    made: dict[FreeingStep, Step] = {"consolidate": consolidate(policy)} if rules.moves else {}
    made["reclaim"] = preempt(policy)
    first = [made.pop(name) for name in scaling.before_provisioning if name in made]
    return (allocate, *first, *(HeldBack(step, scaling.provisioning_s()) for step in made.values()))


def policy_of_rules(rules: PreemptionRules) -> VictimPolicy:
    return VictimPolicy(order_of(rules.victims), rules.min_runtime_s(), rules.break_budgets)


def rules_in_use(documents: Iterable[Document]) -> RunConfiguration | None:
    """The ShoalConfiguration among the objects, as far as decisions depend on it. One that cannot be read is that of
    another version."""
    for each in documents:
        if isinstance(each.value, Unknown) and each.value.kind == RUN_KIND:
            with suppress(UserError):
                found = convert(each.value.raw, RunConfiguration, each.where)
                found.check(each.where)
                return found
    return None


def without_configuration(warnings: Iterable[str], own: RunConfiguration | None) -> list[str]:
    """Without the one that a ShoalConfiguration was skipped, where `rules_in_use` has read it."""
    return [each for each in warnings if own is None or f": {RUN_KIND} (" not in each]


def settings_under(found: Settings, min_runtime_s: float, *, break_budgets: bool) -> Settings:
    """The queues' settings, if these options do not say otherwise."""
    return replace(
        found,
        min_runtime_s=max(found.min_runtime_s, min_runtime_s),
        respect_budgets=found.respect_budgets and not break_budgets,
    )


def order_of(name: str) -> Order:
    try:
        return Order(name)
    except ValueError as error:
        near = difflib.get_close_matches(name, list(Order), 1)
        fix = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(Order)}"
        raise UserError(
            f"order of victims {excerpt(name)} not found", where=Where(path="--victims"), fix=fix
        ) from error

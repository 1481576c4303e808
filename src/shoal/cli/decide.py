"""Implements `shoal decide`: prints what a scheduler should do with manifests, and why.

Guarantees: with `-o json` or `-o yaml` stdout holds one document and nothing else; a refusal is an answer and no
failure; warnings and errors of the input go to stderr. An invalid object is left out of the answer, and the exit code
is then 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from shoal.cli.completion_values import one_of
from shoal.cli.formats import FOR_PROGRAMS, TEXTS, TextOutput, checked
from shoal.cli.named_nodes import Machines, no_nodes_warning
from shoal.cli.option_groups import with_options
from shoal.cli.options import Manifests, Policy, SchedulerConfigFile, Seed


@dataclass(frozen=True, kw_only=True)
class DecideOptions:
    filename: Manifests
    nodes: Machines = None
    cycles: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Rounds to run; by default until one changes nothing.")
    ] = None
    keep_terminating: Annotated[
        bool, typer.Option("--keep-terminating", help="Terminating pods keep their resources in all rounds.")
    ] = False
    policy: Policy = "Shoal"
    scheduler_config: SchedulerConfigFile = None
    discipline: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Whose queues decide: kueue, fairshare (KAI) or volcano; by default those that are present.",
            autocompletion=one_of(("kueue", "fairshare", "volcano")),
        ),
    ] = ""
    victims: Annotated[
        str, typer.Option(metavar="ORDER", help="Which pods are preempted first; workloads follow Kueue's order.")
    ] = "lowest-priority-first"
    min_runtime: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Pods that have run for less than this are not preempted or moved."
        ),
    ] = 0
    break_budgets: Annotated[
        bool, typer.Option("--break-budgets", help="Violate disruption budgets when nothing else helps.")
    ] = False
    no_moves: Annotated[bool, typer.Option("--no-moves", help="Do not move running pods so that others fit.")] = False
    seed: Seed = 42
    strict: Annotated[
        bool, typer.Option("--strict", help="Decide nothing if any object is invalid; all errors are reported.")
    ] = False
    output: TextOutput = TEXTS[0]
    as_json: Annotated[bool, typer.Option("--json", help="The same as -o json.")] = False


@with_options
def decide(options: DecideOptions) -> None:
    """Decide for manifests: which pods are placed where, are preempted, or wait, and why.

    A round is one pass of the scheduler over everything that waits. Preempted pods and admitted workloads have an
    effect in the next round, so rounds are run until one changes nothing; that one is counted too.
    """
    checked(options.output, TEXTS)
    from msgspec import structs

    from shoal.cli.known_names import check_known
    from shoal.cli.manifest_source import loaded_manifests
    from shoal.cli.manifests import loaded_of, rounds_of, warn
    from shoal.cli.preemption_options import settings_under, steps_of
    from shoal.cli.progress import long_work, terminal_step
    from shoal.sim.answers import answer
    from shoal.sim.queue_projects import DISCIPLINES
    from shoal.units.errors import Where
    from shoal.views.decision import InputError

    if options.discipline:
        check_known(options.discipline, tuple(DISCIPLINES), "discipline", Where(path="--discipline"))
    breaks = options.break_budgets
    steps = steps_of(options.victims, options.min_runtime, break_budgets=breaks, no_moves=options.no_moves)
    limits = partial(settings_under, min_runtime_s=options.min_runtime, break_budgets=breaks)
    load = partial(
        loaded_of,
        policy=options.policy,
        scheduler_config=options.scheduler_config,
        limits=limits,
        discipline=options.discipline,
    )
    _, loaded = loaded_manifests(options.filename, options.nodes, load)
    warn([*loaded.warnings, *no_nodes_warning(loaded)])
    if options.strict and loaded.errors:
        return
    rounds = rounds_of(loaded, options.seed, steps=steps, keep_terminating=options.keep_terminating)
    with long_work("deciding", terminal_step):
        decision = answer(rounds, loaded.manifests.gated, options.cycles)
    decision = structs.replace(decision, errors=[InputError.of(each) for each in loaded.errors])
    if options.as_json or options.output in FOR_PROGRAMS:
        from shoal.cli.formats import write

        write(decision, "json" if options.as_json else options.output)
        return
    from shoal.cli.formats import console
    from shoal.views.decision_text import show

    show(console(is_folded=True), decision)

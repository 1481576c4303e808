"""`shoal run`: schedule pods and admit jobs on a Kubernetes cluster, until Ctrl-C."""

from __future__ import annotations

import difflib
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import Kubeconfig, KubeContext, chosen_access
from shoal.cli.cluster_parts import told
from shoal.units.errors import UserError, Where, excerpt

if TYPE_CHECKING:
    from shoal.cli.run_files import RunFiles
    from shoal.engine.profile import Builder
    from shoal.wiring.run_choice import RunChoice

_DONE_LIVE = ("VolumeRestrictions", "VolumeBinding", "VolumeZone", "DynamicResources", "DefaultPreemption")
"""What a set of manifests does not have, and a cluster has."""
_CONTROLLERS = ("scheduler", "queues", "jobs", "pods", "gatekeeper", "advisor", "volcano", "kai")


def run(
    controllers: Annotated[
        str,
        typer.Option(metavar="NAMES", help=f"Which parts to run, with commas between: {', '.join(_CONTROLLERS)}."),
    ] = "",
    config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A ShoalConfiguration, Kueue's Configuration, a KubeSchedulerConfiguration; repeatable.",
        ),
    ] = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Whose pods are scheduled; may be given several times. By default shoal."),
    ] = None,
    leader_elect: Annotated[
        bool | None,
        typer.Option("--leader-elect/--no-leader-elect", help="Of several such processes one works. On by default."),
    ] = None,
    metrics_address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where metrics and health are, by default on 127.0.0.1:8080; or none."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: KubeContext = "",
    speed: Annotated[float, typer.Option("--speed", hidden=True)] = 1.0,
    clock: Annotated[str, typer.Option("--clock", hidden=True)] = "",
    child: Annotated[bool, typer.Option("--child", hidden=True)] = False,
    notify: Annotated[int | None, typer.Option("--notify-fd", hidden=True)] = None,
) -> None:
    """Run Shoal on a cluster: place pods, admit jobs through queues, explain."""
    from msgspec.structs import replace

    from shoal.cli.run_files import read_run_files
    from shoal.wiring.door import door_settings
    from shoal.wiring.pace import Moment
    from shoal.wiring.run import run as run_on

    files = read_run_files(config or [])
    own = files.own
    if scheduler_name:
        own = replace(own, scheduler_names=tuple(dict.fromkeys(scheduler_name)))
    if leader_elect is not None:
        own = replace(own, leader_election=replace(own.leader_election, leader_elect=leader_elect))
    if controllers:
        own = replace(own, controllers=tuple(name.strip() for name in controllers.split(",")))
    own.check(Where(path="shoal run"))
    if metrics_address is not None:
        door_settings(metrics_address)
    choice = replace(
        run_choice(replace(files, own=own)),
        speed=speed,
        since=Moment.read(clock) if clock else None,
        is_child=child,
        metrics=metrics_address,
    )
    access = chosen_access(kubeconfig, context)
    run_on(access, choice, told(lambda what: f"{what} at {access.server}; Ctrl-C ends this.", notify))


def run_choice(files: RunFiles) -> RunChoice:
    from msgspec.structs import replace

    from shoal.cli.yielding import steps_of
    from shoal.wiring.run_choice import RunChoice

    own = files.own
    rules = own.preemption
    builder, names = _policy(files)
    return RunChoice(
        own=own if names is None else replace(own, scheduler_names=names),
        builder=builder,
        steps=steps_of(
            rules.victims, rules.min_runtime_s(), break_budgets=rules.break_budgets, no_moves=not rules.moves
        ),
        controllers=_known(own.controllers) or _CONTROLLERS,
        kueue=files.kueue,
        identity=f"{os.uname().nodename}_{uuid.uuid4()}",
    )


def _policy(files: RunFiles) -> tuple[Builder, tuple[str, ...] | None]:
    """How pods are placed, and whose, where a KubeSchedulerConfiguration says it."""
    from shoal.engine.profile import POLICIES

    if files.profiles is None:
        name = files.own.policy
        if name not in POLICIES:
            near = difflib.get_close_matches(name, list(POLICIES), 1)
            fix = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(POLICIES)}"
            raise UserError(f"no policy is called {excerpt(name)}", where=Where(path="policy"), fix=fix)
        return POLICIES[name], None
    for warning in files.profiles.warnings:
        if not any(f"{plugin}: " in warning for plugin in _DONE_LIVE):
            typer.echo(f"shoal: warning: {warning}", err=True)
    wanted = files.own.scheduler_names
    found = [profile for profile in files.profiles.profiles if profile.scheduler_name in wanted]
    chosen = found or list(files.profiles.profiles)
    if len(chosen) != 1:
        names = ", ".join(profile.scheduler_name for profile in chosen)
        what = f"one process serves one profile, and the files have {names}"
        raise UserError(what, where=Where(path="profiles"), fix="choose one with --scheduler-name")
    return chosen[0].build, (chosen[0].scheduler_name,)


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in _CONTROLLERS:
            near = difflib.get_close_matches(name, _CONTROLLERS, 1)
            fix = f"did you mean {near[0]}?" if near else f"choose among {', '.join(_CONTROLLERS)}"
            raise UserError(f"no controller is called {excerpt(name)}", where=Where(path="--controllers"), fix=fix)
    return tuple(dict.fromkeys(names))

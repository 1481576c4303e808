"""Implements `shoal agent mig plan|apply|assert|export`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.agent_options import FakeMachine
from shoal.cli.formats import TEXTS, TextOutput, checked, write
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.agent.mig.layout_change import NodeMig
    from shoal.devices.mig_layout_checks import Problem
    from shoal.devices.mig_layouts import Specs
    from shoal.devices.mig_plan import MigPlan

from contextlib import contextmanager

_EXPORTS = ("yaml", "json")
ExportOutput = Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="yaml or json.")]
ExportName = Annotated[str, typer.Option("-l", "--config-label", metavar="NAME", help="The name of the layout.")]
Force = Annotated[
    bool, typer.Option("--force", help="Destroy instances that are in use; the driver refuses those with processes.")
]


@dataclasses.dataclass(frozen=True)
class ChosenLayout:
    file: Annotated[
        str,
        typer.Option(
            "-f",
            "--config-file",
            metavar="FILE",
            help="A file of mig-parted, - for stdin; else the layouts that are generated for the GPUs.",
        ),
    ] = ""
    config: Annotated[
        str,
        typer.Option("-c", "--selected-config", metavar="NAME", help="The layout; else the only one of the file."),
    ] = ""


@with_options
def plan(*, fake: FakeMachine = "", force: Force = False, output: TextOutput = TEXTS[0], layout: ChosenLayout) -> None:
    """Print the steps to a MIG layout; nothing is changed.

    Instances that the layout has too stay where they are.
    """
    checked(output, TEXTS)
    with _node(fake) as node:
        found, specs = _planned(node, layout, is_forced=force)
        replaced = _replaced_by_mig_parted(node, specs)
    if output != TEXTS[0]:
        write({"steps": [_step(step) for step in found.steps], "kept": found.kept}, output)
        return
    for step in found.steps:
        typer.echo(str(step))
    if not found.steps:
        typer.echo("The layout is applied.")
        return
    typer.echo(f"{found.kept} instances stay, {found.destroyed} are destroyed; mig-parted would destroy {replaced}.")


@with_options
def apply(*, fake: FakeMachine = "", force: Force = False, output: TextOutput = TEXTS[0], layout: ChosenLayout) -> None:
    """Change the GPUs of this machine to a MIG layout.

    If a step fails, the former layout is restored. Exit code 1 if GPUs need a reset before the layout is complete.
    """
    checked(output, TEXTS)
    with _node(fake) as node:
        found, _ = _planned(node, layout, is_forced=force)
        change = node.apply(found)
    if change.failure:
        state = "the former layout is restored" if change.undone else "the former layout could not be restored"
        raise UserError(f"{change.failure}; {state}", fix="shoal agent mig export prints the present layout")
    if output != TEXTS[0]:
        write({"done": [_step(step) for step in change.done], "resets": list(change.resets)}, output)
    else:
        for step in change.done:
            typer.echo(str(step))
        for index in change.resets:
            typer.echo(f"GPU {index} needs a reset: run nvidia-smi --gpu-reset -i {index}, then apply again.")
        typer.echo("The layout is applied." if not change.resets else "The layout is not complete.")
    if change.resets:
        raise typer.Exit(1)


@with_options
def assert_layout(
    *,
    fake: FakeMachine = "",
    mode_only: Annotated[bool, typer.Option("--mode-only", help="Compare the MIG modes only.")] = False,
    valid_config: Annotated[bool, typer.Option("--valid-config", help="Check only that the file has it.")] = False,
    layout: ChosenLayout,
) -> None:
    """Check whether a MIG layout is applied.

    Exit code 1 if it is not. Every GPU of the machine must have the layout of its entry.
    """
    from shoal.devices.mig_assertions import layout_matches, mode_matches

    with _node(fake) as node:
        specs = _specs(node, layout)
        gpus = [one.gpu for one in node.present()]
    if valid_config:
        typer.echo("Selected MIG configuration is valid")
        return
    if not mode_matches(specs, gpus) or not (mode_only or layout_matches(specs, gpus)):
        typer.echo("Assertion failure: selected configuration not currently applied", err=True)
        raise typer.Exit(1)
    what = "MIG mode settings from configuration" if mode_only else "MIG configuration"
    typer.echo(f"Selected {what} currently applied")


def export(*, fake: FakeMachine = "", name: ExportName = "current", output: ExportOutput = _EXPORTS[0]) -> None:
    """Print the present MIG layout as a file of mig-parted."""
    checked(output, _EXPORTS)
    from shoal.devices.mig_export import exported_document, exported_specs

    with _node(fake) as node:
        present = node.present()
    gpus = [
        (one.gpu.index, str(one.gpu.pci[0]) if one.gpu.pci else one.gpu.name, one.gpu.is_mig, one.gpu.counts)
        for one in present
    ]
    document = exported_document(exported_specs(gpus), name)
    if output == _EXPORTS[0]:
        from shoal.api.yaml_out import to_yaml

        sys.stdout.write(to_yaml(document))
    else:
        write(document, output)


@contextmanager
def _node(fake: str) -> Iterator[NodeMig]:
    from shoal.agent.mig.layout_change import NodeMig
    from shoal.wiring.gpu_driver import open_mig_patiently

    driver, control = open_mig_patiently(fake)
    try:
        yield NodeMig(driver, control)
    finally:
        driver.close()


def _specs(node: NodeMig, layout: ChosenLayout) -> Specs:
    from shoal.devices.mig_config import MigConfigError, parse_mig_config, selected_config

    where = Where(file=layout.file) if layout.file else Where(path="--selected-config")
    try:
        configs = parse_mig_config(_text(layout.file)) if layout.file else node.layouts()
        return selected_config(configs, layout.config)
    except MigConfigError as error:
        fix = "" if layout.file else f"the layouts of these GPUs are {', '.join(node.layouts())}"
        raise UserError(str(error), where=where, fix=fix) from error


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", where=Where(file=file)) from error


def _planned(node: NodeMig, layout: ChosenLayout, *, is_forced: bool) -> tuple[MigPlan, Specs]:
    from shoal.devices.mig_layout_checks import Problem
    from shoal.devices.mig_plan import planned

    specs = _specs(node, layout)
    found = planned(specs, node.present(), is_forced=is_forced)
    if isinstance(found, Problem):
        raise _refusal(found)
    return found, specs


def _refusal(problem: Problem) -> UserError:
    return UserError(problem.what, fix=problem.fix)


def _replaced_by_mig_parted(node: NodeMig, specs: Specs) -> int:
    """How many instances mig-parted would destroy for the layout."""
    from shoal.devices.mig_assertions import mig_parted_steps

    gpus = [one.gpu for one in node.present()]
    steps = mig_parted_steps(specs, gpus).steps
    cleared = {int(step.split()[1]) for step in steps if step.startswith(("clear ", "instances "))}
    return sum(count for gpu in gpus if gpu.index in cleared for _, count in gpu.counts)


def _step(step: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"step": step.kind, "gpu": step.gpu}
    if step.kind == "mode":
        return found | {"enabled": step.enabled}
    return found | {"profile": step.profile, "start": step.start}

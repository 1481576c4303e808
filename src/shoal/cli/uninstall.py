"""Implements `shoal uninstall`: removes exactly what was installed. Pods that Shoal placed keep running."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, announce
from shoal.cli.option_groups import with_options
from shoal.cli.release_options import ReleaseOptions
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.wiring.installation.cluster_writer import ClusterWriter


@dataclass(frozen=True, kw_only=True)
class UninstallOptions:
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be removed; remove nothing.")] = False
    keep_definitions: Annotated[
        bool, typer.Option("--keep-crds", help="Keep all CustomResourceDefinitions and their objects.")
    ] = False
    delete_objects: Annotated[
        bool,
        typer.Option(
            "--delete-objects",
            help="Remove definitions that have objects and the volume of the history, without a question.",
        ),
    ] = False
    no_revert: Annotated[
        bool,
        typer.Option("--no-revert", help="Do not return adopted projects, such as Kueue, to their own controllers."),
    ] = False


@with_options
def uninstall(
    *,
    named: ReleaseOptions,
    options: UninstallOptions,
    access: AccessOptions,
) -> None:
    """Remove Shoal from a cluster: everything that was installed, and nothing else.

    Running pods stay. A question is asked before a CustomResourceDefinition with objects or a PersistentVolumeClaim is
    removed; without a terminal it is kept.
    """
    from shoal.cli.installation_access import installing

    connected = access.access()
    announce(connected, changes=not options.dry_run)

    async def work(writer: ClusterWriter, _: str) -> str:
        return await removed(writer, named, options)

    typer.echo(installing(connected, work))


async def removed(writer: ClusterWriter, named: ReleaseOptions, options: UninstallOptions) -> str:
    from shoal.cli.adoption import revert_all
    from shoal.cli.installation_access import progress_line
    from shoal.wiring.installation.release_store import release_to_remove
    from shoal.wiring.installation.removal import RemovalRequest, Remover

    release = await release_to_remove(writer, named.release, named.namespace)
    remover = Remover(writer, progress_line)
    planned = await remover.plan(release)
    counts = dict(planned.with_objects)
    if not options.no_revert:
        await revert_all(writer, release, is_dry=options.dry_run)
    if options.dry_run:
        for address in planned.addresses:
            note = f" ({counts[address]} objects)" if address in counts else ""
            typer.echo(visible(f"{address}{note}"))
        return f"{len(planned.addresses)} objects would be removed"
    ask = _always if options.delete_objects else _asked if sys.stdin.isatty() else None
    ask_volume = _always_volume if options.delete_objects else _asked_volume if sys.stdin.isatty() else None
    request = RemovalRequest(release, options.keep_definitions, ask, ask_volume)
    kept = await remover.remove(request, planned)
    for address in kept:
        note = f", which has {counts[address]} objects" if address in counts else ""
        typer.echo(visible(f"kept {address}{note}"), err=True)
    if kept:
        typer.echo("to remove them too: shoal uninstall --delete-objects", err=True)
    return f"release {release.name} is removed from the namespace {release.namespace}"


def _always(_name: str, _number: int) -> bool:
    return True


def _always_volume(_name: str) -> bool:
    return True


def _asked_volume(name: str) -> bool:
    return typer.confirm(f"Remove the PersistentVolumeClaim {name} and its data?", err=True)


def _asked(name: str, number: int) -> bool:
    return typer.confirm(f"Remove the CustomResourceDefinition {name} and its {number} objects?", err=True)

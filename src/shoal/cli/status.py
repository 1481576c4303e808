"""Implements `shoal status`: the release, its components with versions, each node, and the first failing layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from shoal.cli.cluster_access import AccessOptions, announce, named
from shoal.cli.exit_codes import FAILED
from shoal.cli.formats import TABLES, TableOutput, checked
from shoal.cli.option_groups import with_options
from shoal.cli.release_options import ReleaseOptions
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.install.progress_rows import AdoptionRow, InstallationStatus
    from shoal.wiring.installation.cluster_writer import ClusterWriter


@with_options
def status(
    *,
    chosen: ReleaseOptions,
    output: TableOutput = TABLES[0],
    access: AccessOptions,
) -> None:
    """Show an installation of Shoal: components, versions, nodes, and the first layer that fails.

    The exit code is 1 if something is not ready.
    """
    checked(output, TABLES)
    from shoal.cli.formats import FOR_PROGRAMS, write
    from shoal.cli.installation_access import installing

    connected = access.access()
    announce(connected)

    async def work(writer: ClusterWriter, _: str) -> InstallationStatus:
        return await _status(writer, chosen)

    found = installing(connected, work)
    if output in FOR_PROGRAMS:
        write(found, output, named(connected))
    else:
        _show(found, is_wide=output == "wide")
    if found.problem:
        raise typer.Exit(FAILED)


async def _status(writer: ClusterWriter, chosen: ReleaseOptions) -> InstallationStatus:
    from shoal.client.kind import DAEMON_SETS, DEPLOYMENTS, NODES
    from shoal.install.progress_rows import (
        InstallationStatus,
        component_rows,
        failed_upgrade,
        first_problem,
        node_rows,
    )
    from shoal.wiring.installation.facts_reader import POLICIES
    from shoal.wiring.installation.release_store import installed_record

    record = await installed_record(writer, chosen.release, chosen.namespace)
    policies = await writer.all(POLICIES)
    spaces = {record.namespace, *((one.get("status") or {}).get("namespace", "") for one in policies)} - {""}
    deployments = [one for space in sorted(spaces) for one in await writer.all(DEPLOYMENTS, "", space)]
    daemon_sets = [one for space in sorted(spaces) for one in await writer.all(DAEMON_SETS, "", space)]
    components, nodes = tuple(component_rows(deployments, daemon_sets)), tuple(node_rows(await writer.all(NODES)))
    return InstallationStatus(
        record.name,
        record.namespace,
        record.state,
        record.current.number,
        record.current.version,
        components,
        nodes,
        next((str((one.get("status") or {}).get("state", "unknown")) for one in policies), ""),
        first_problem(record.state, components, nodes),
        failed_upgrade(record),
        await adoption_rows(writer, record.namespace),
    )


async def adoption_rows(writer: ClusterWriter, namespace: str) -> tuple[AdoptionRow, ...]:
    from shoal.install.adoption.projects import PROJECTS
    from shoal.install.progress_rows import AdoptionRow
    from shoal.wiring.installation.adopting import find_adoption

    found = [(project, await find_adoption(writer, project.name, namespace)) for project in PROJECTS]
    return tuple(AdoptionRow(project.title, record.state) for project, record in found if record is not None)


def _show(found: InstallationStatus, *, is_wide: bool) -> None:
    from shoal.cli.formats import console

    policy = f", ClusterPolicy {found.policy}" if found.policy else ""
    head = f"release {found.release} in {found.namespace}: {found.state}, revision {found.revision}, {found.version}"
    typer.echo(visible(f"{head}{policy}"))
    for one in found.adoptions:
        typer.echo(visible(f"{one.state} {one.project}"))
    shown = console()
    shown.print(
        _table(
            ("COMPONENT", "NAME", "READY", "VERSION", "STATE"),
            [(one.component, one.name, one.ready, one.version, one.state) for one in found.components],
        )
    )
    columns: tuple[str, ...] = ("NODE", "STATE", "LAYER", "GPUS", "DRIVER", "MESSAGE")
    rows: list[tuple[str, ...]] = [
        (one.node, one.state, one.layer, one.gpus, one.driver, one.message) for one in found.nodes
    ]
    if is_wide:
        columns = (*columns, "STAGES")
        stages = [" ".join(f"{layer}={state}" for layer, state in one.stages.items()) for one in found.nodes]
        rows = [(*row, more) for row, more in zip(rows, stages, strict=True)]
    if rows:
        shown.print(_table(columns, rows))
    if found.failed_upgrade:
        typer.echo(visible(f"failed upgrade: {found.failed_upgrade}"))
    typer.echo(visible(f"first problem: {found.problem}") if found.problem else "everything is ready")


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> object:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table

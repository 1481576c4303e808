"""Implements `shoal upgrade`: changes values or the version of a release, and returns to the former revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, announce
from shoal.cli.exit_codes import FAILED
from shoal.cli.option_groups import with_options
from shoal.cli.release_options import ReleaseOptions
from shoal.cli.values_options import ValuesOptions
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.install.inventory import ReleaseRecord
    from shoal.wiring.installation.applying import Installer
    from shoal.wiring.installation.cluster_writer import ClusterWriter
    from shoal.wiring.installation.preparing import InstallRequest


@dataclass(frozen=True, kw_only=True)
class UpgradeOptions:
    rollback: Annotated[bool, typer.Option("--rollback", help="Apply the former revision again.")] = False
    reset_values: Annotated[
        bool, typer.Option("--reset-values", help="Start from the defaults instead of the present values.")
    ] = False
    diff: Annotated[bool, typer.Option("--diff", help="Print what would change in the cluster; apply nothing.")] = False
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse",
            help="Upgrade a copy of the cluster in this process; print what would change or fail, and apply nothing.",
        ),
    ] = False
    keep_failed: Annotated[
        bool, typer.Option("--keep-failed", help="Do not return to the present revision if the upgrade is not ready.")
    ] = False
    take_ownership: Annotated[
        bool, typer.Option("--take-ownership", help="Take over existing objects with the same names.")
    ] = False
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until everything is ready.")] = True
    timeout: Annotated[str, typer.Option(metavar="TIME", help="The longest wait: 90s, 10m.")] = "10m"


@with_options
def upgrade(
    *,
    named: ReleaseOptions,
    options: UpgradeOptions,
    values: ValuesOptions,
    access: AccessOptions,
) -> None:
    """Upgrade Shoal in a cluster to this version, or change its values.

    The values of the release are kept, and the given ones change them. An upgrade that is not ready in time is rolled
    back.
    """
    from shoal.cli.installation_access import installing

    if options.rollback and values.are_given:
        raise UserError("is given with values", where=Where(path="--rollback"), fix="leave out the values")
    if options.rehearse and options.diff:
        raise UserError("is given with --diff", where=Where(path="--rehearse"), fix="leave out one of the two")
    connected = access.access()
    announce(connected, changes=not (options.diff or options.rehearse))

    async def work(writer: ClusterWriter, version: str) -> str:
        return await _upgraded(writer, version, named, options, values)

    typer.echo(installing(connected, work))


async def _upgraded(
    writer: ClusterWriter, version: str, named: ReleaseOptions, options: UpgradeOptions, values: ValuesOptions
) -> str:
    from shoal.cli.install import seconds, show_differences
    from shoal.cli.installation_access import progress_line, show_findings
    from shoal.wiring.installation.applying import Installer, Patience
    from shoal.wiring.installation.preparing import prepare
    from shoal.wiring.installation.release_store import installed_record

    installer = Installer(writer, progress_line, Patience(options.wait, seconds(options.timeout)))
    record = await installed_record(writer, named.release, named.namespace)
    if options.rehearse:
        return await _rehearsed(writer, version, record, options, values)
    if options.rollback:
        latest = await installer.roll_back(record)
        return f"release {record.name} has revision {latest.current.number}, with the values of the former one"
    prepared = await prepare(writer, _request(version, record, options, values))
    show_findings(prepared.findings)
    if options.diff:
        await show_differences(writer, prepared)
        return f"revision {record.current.number} is in force"
    if prepared.errors:
        typer.echo("shoal: nothing was changed: correct the errors above", err=True)
        raise typer.Exit(FAILED)
    latest = await installer.upgrade(prepared, rolls_back=not options.keep_failed)
    return f"release {record.name} has revision {latest.current.number} in the namespace {record.namespace}"


def _request(version: str, record: ReleaseRecord, options: UpgradeOptions, values: ValuesOptions) -> InstallRequest:
    from shoal import __version__
    from shoal.install.release import Release
    from shoal.wiring.installation.preparing import InstallRequest

    kept = None if options.reset_values else record.current.values
    release = Release(record.name, record.namespace, __version__)
    return InstallRequest(release, values.read(kept), version, takes_ownership=options.take_ownership)


async def _rehearsed(
    writer: ClusterWriter, version: str, record: ReleaseRecord, options: UpgradeOptions, values: ValuesOptions
) -> str:
    """Exits with a failure if the upgrade would fail."""
    from shoal.cli.installation_access import show_findings
    from shoal.cli.rehearsed_changes import show_rehearsal
    from shoal.wiring.installation.preparing import prepare
    from shoal.wiring.installation.rehearsal import rehearse
    from shoal.wiring.installation.release_store import installed_record

    request = _request(version, record, options, values)
    if not options.rollback:
        found = await prepare(writer, request)
        show_findings(found.findings)
        if found.errors:
            typer.echo("shoal: nothing was rehearsed: correct the errors above", err=True)
            raise typer.Exit(FAILED)

    async def act(copy: ClusterWriter, installer: Installer) -> None:
        if options.rollback:
            await installer.roll_back(await installed_record(copy, record.name, record.namespace))
        else:
            await installer.upgrade(await prepare(copy, request), rolls_back=False)

    rehearsal = await rehearse(writer, writer.clock, record.release, act)
    show_rehearsal(rehearsal)
    if rehearsal.failures:
        raise typer.Exit(FAILED)
    return "the upgrade would be carried out; nothing was changed"

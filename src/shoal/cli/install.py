"""Implements `shoal install`: checks a cluster, applies Shoal and its GPU stack, waits, and tests a GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.adoption import AdoptOptions
from shoal.cli.cluster_access import AccessOptions, announce
from shoal.cli.exit_codes import FAILED
from shoal.cli.formats import FOR_PROGRAMS, checked
from shoal.cli.option_groups import with_options
from shoal.cli.values_options import ValuesOptions
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.install.release import Release
    from shoal.wiring.installation.applying import Patience
    from shoal.wiring.installation.cluster_writer import ClusterWriter
    from shoal.wiring.installation.preparing import InstallRequest, Preparation

IMAGES, VALUES, CHECK = "images", "values", "check"
"""Words in place of a name."""
OBSERVING = "observe.enabled=true"


@dataclass(frozen=True, kw_only=True)
class InstallOptions:
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", metavar="NAME", help="The namespace; it is created if it is missing.")
    ] = "shoal-system"
    generate_name: Annotated[bool, typer.Option("-g", "--generate-name", help="Generate the name of the release.")] = (
        False
    )
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the objects; apply nothing.")] = False
    diff: Annotated[bool, typer.Option("--diff", help="Print what would change in the cluster; apply nothing.")] = False
    observe: Annotated[
        bool,
        typer.Option(
            "--observe", help="Install only the observer, which may read, explains what waits, and decides nothing."
        ),
    ] = False
    take_ownership: Annotated[
        bool, typer.Option("--take-ownership", help="Take over existing objects with the same names.")
    ] = False
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until everything is ready, then run the smoke test.")
    ] = True
    timeout: Annotated[str, typer.Option(metavar="TIME", help="The longest wait: 90s, 10m.")] = "10m"
    # Options of helm that are always so here.
    create_namespace: Annotated[bool, typer.Option("--create-namespace", hidden=True)] = True
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FORMAT", help="Of --dry-run, --adopt and images: yaml or json.")
    ] = ""


@with_options
def install(
    release: Annotated[
        str,
        typer.Argument(
            metavar="[RELEASE]",
            help="The name of the release, by default shoal; or check: the findings alone; images: those that it "
            "needs; values: all options.",
            show_default=False,
        ),
    ] = "",
    *,
    options: InstallOptions,
    adoption: AdoptOptions,
    values: ValuesOptions,
    access: AccessOptions,
) -> None:
    """Install Shoal, with the GPU stack of the nodes, in a cluster.

    The options have the names of NVIDIA's chart of the GPU operator. An interrupted installation is completed by the
    same command.
    """
    if options.output:
        checked(options.output, FOR_PROGRAMS)
    if release == IMAGES:
        from shoal.cli.installed_images import print_images

        print_images(values.read(), options.output or "yaml")
        return
    if release == VALUES:
        from shoal.install.values.documented import documented_values

        typer.echo(documented_values(), nl=False)
        return
    if release == CHECK:
        from shoal.cli.installation_check import check

        check(access, options.namespace, values.read())
        return
    from shoal.wiring.installation.applying import Patience
    from shoal.wiring.installation.preparing import InstallRequest

    if options.observe and adoption.is_given:
        raise UserError("is given with --adopt", where=Where(path="--observe"), fix="leave out one of the two")
    if options.observe:
        values = replace(values, set_=[*(values.set_ or ()), OBSERVING])
    chosen = values.read()
    request = InstallRequest(_release(release, options), chosen, takes_ownership=options.take_ownership)
    patience = Patience(options.wait, seconds(options.timeout))
    connected = access.access()
    announce(connected, changes=not (options.dry_run or options.diff))
    if adoption.is_given:
        from shoal.cli.adoption import Adoption, adopt, revert
        from shoal.install.adoption.projects import adopted_project

        asked = Adoption(
            adopted_project(adoption.adopt),
            request,
            patience,
            options.output,
            options.dry_run or options.diff,
            values.are_given,
        )
        (revert if adoption.revert else adopt)(connected, asked)
        return
    carry_out(connected, request, options, patience)
    if options.observe and not (options.dry_run or options.diff):
        from shoal.cli.installation_check import show_waiting

        show_waiting(access)


def carry_out(access: Access, request: InstallRequest, options: InstallOptions, patience: Patience) -> None:
    from msgspec.structs import replace

    from shoal.cli.installation_access import installing, progress_line, show_findings
    from shoal.wiring.installation.applying import Installer
    from shoal.wiring.installation.preparing import prepare

    async def work(writer: ClusterWriter, version: str) -> Preparation:
        prepared = await prepare(writer, replace(request, server_version=version))
        show_findings(prepared.findings)
        if options.diff:
            await show_differences(writer, prepared)
        elif not options.dry_run and not prepared.errors:
            await Installer(writer, progress_line, patience).apply(prepared)
        return prepared

    prepared = installing(access, work)
    release = request.release
    if options.dry_run:
        print_objects(prepared, options.output)
    elif prepared.errors:
        typer.echo("shoal: nothing was installed: correct the errors above", err=True)
    elif not options.diff:
        typer.echo(f"release {release.name} is installed in the namespace {release.namespace}")
    if prepared.errors and not options.dry_run:
        raise typer.Exit(FAILED)


def print_objects(prepared: Preparation, output: str) -> None:
    """In the order in which they are applied: kubectl apply -f - takes them."""
    import sys

    import msgspec

    from shoal.api.yaml_out import to_yaml

    if output == "json":
        whole = {"apiVersion": "v1", "kind": "List", "items": list(prepared.plan.applied)}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(whole), indent=1).decode() + "\n")
        return
    sys.stdout.write("---\n".join(to_yaml(one) for one in prepared.plan.applied))


async def show_differences(writer: ClusterWriter, prepared: Preparation) -> None:
    from shoal.install.differences import differences
    from shoal.install.manifest import address_of
    from shoal.units.visible_text import visible

    is_same = True
    for obj in prepared.plan.applied:
        address = address_of(obj)
        present = await writer.find(address)
        if present is None:
            typer.echo(f"+ {visible(str(address))}")
            is_same = False
            continue
        found = list(differences(obj, {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **present}))
        if found:
            is_same = False
            typer.echo(f"~ {visible(str(address))}")
            for one in found:
                typer.echo(f"    {visible(str(one))}")
    for address in prepared.plan.removed:
        is_same = False
        typer.echo(f"- {visible(str(address))}")
    if is_same:
        typer.echo("nothing would change")


def _release(name: str, options: InstallOptions) -> Release:
    import time

    from shoal import __version__
    from shoal.install.release import NAME, Release, checked_name, generated_name

    if name and options.generate_name:
        raise UserError("is given with a name", where=Where(path="--generate-name"), fix="leave out one of the two")
    chosen = generated_name(time.time()) if options.generate_name else name or NAME
    checked_name(chosen, Where(path="RELEASE"))
    checked_name(options.namespace, Where(path="--namespace"), most=63)
    return Release(chosen, options.namespace, __version__)


def seconds(text: str, option: str = "--timeout") -> float:
    from shoal.units.durations import DurationError, nanoseconds
    from shoal.units.errors import excerpt

    try:
        # As with helm and kubectl, a number without a unit means seconds.
        found = nanoseconds(f"{text}s" if text.isascii() and text.isdigit() else text)
    except DurationError:
        found = -1
    if found <= 0:
        raise UserError(f"{excerpt(text)} is not a duration", where=Where(path=option), fix="as in 90s or 10m")
    return found / 10**9

"""Implements `shoal tenant apply` and `shoal tenant delete`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import one_of
from shoal.cli.formats import FOR_PROGRAMS, checked, output_option
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.client.clock import Clock
    from shoal.client.port import Api
    from shoal.client.served_writer import ServedWriter
    from shoal.policy.tenants.team import Team
    from shoal.wiring.tenants.applying import AppliedObject

_FORMATS = ("text", *FOR_PROGRAMS)
_PANEL = "A team without a file"
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Let the server check everything and keep nothing; tell what would change.")
]


@dataclass(frozen=True, kw_only=True)
class TeamOptions:
    """The most used fields of a team, for one without a file."""

    gpus: Annotated[
        int | None, typer.Option("--gpus", metavar="N", min=0, help="Whole GPUs.", rich_help_panel=_PANEL)
    ] = None
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource",
            metavar="NAME=N",
            help="Other devices: nvidia.com/mig-1g.10gb=7; repeatable.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    cpu: Annotated[str, typer.Option("--cpu", metavar="N", help="CPUs.", rich_help_panel=_PANEL)] = ""
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory.", rich_help_panel=_PANEL)] = ""
    storage: Annotated[
        str, typer.Option("--storage", metavar="SIZE", help="Storage of all claims.", rich_help_panel=_PANEL)
    ] = ""
    admin: Annotated[
        list[str] | None,
        typer.Option("--admin", metavar="GROUP", help="A group, user:NAME, or an account.", rich_help_panel=_PANEL),
    ] = None
    developer: Annotated[
        list[str] | None,
        typer.Option("--developer", metavar="GROUP", help="The same for developers.", rich_help_panel=_PANEL),
    ] = None
    viewer: Annotated[
        list[str] | None,
        typer.Option("--viewer", metavar="GROUP", help="The same for viewers.", rich_help_panel=_PANEL),
    ] = None
    cohort: Annotated[
        str, typer.Option("--cohort", metavar="NAME", help="The teams that lend GPUs.", rich_help_panel=_PANEL)
    ] = ""
    priority: Annotated[
        list[str] | None,
        typer.Option("--priority", metavar="NAME", help="production, research or batch.", rich_help_panel=_PANEL),
    ] = None
    budget: Annotated[
        str, typer.Option("--budget", metavar="AMOUNT", help="The budget of a month.", rich_help_panel=_PANEL)
    ] = ""
    enforce_budget: Annotated[
        str,
        typer.Option(
            "--enforce-budget",
            metavar="MODE",
            help="New work waits once the budget is spent, or by forecast.",
            rich_help_panel=_PANEL,
            autocompletion=one_of(("spent", "forecast")),
        ),
    ] = ""

    def spec(self) -> dict[str, Any]:
        """The fields that are given."""
        from shoal.cli.device_amounts import device_amounts

        quota = {
            "gpus": self.gpus,
            "resources": device_amounts(self.resource, "--resource"),
            "cpu": self.cpu,
            "memory": self.memory,
            "storage": self.storage,
        }
        members = {"admins": self.admin, "developers": self.developer, "viewers": self.viewer}
        fields = {
            "quota": _given(quota),
            "members": _given(members),
            "queue": _given({"cohort": self.cohort}),
            "priorities": self.priority,
            "budgetPerMonth": self.budget,
            "budgetEnforced": self.enforce_budget,
        }
        return _given(fields)


@dataclass(frozen=True, kw_only=True)
class ApplyOptions:
    team: Annotated[str, typer.Argument(metavar="TEAM", help="A file with teams, - for stdin, or a name.")]
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over a namespace or queue that exists, and isolate what runs there.")
    ] = False
    dry_run: DryRun = False
    output: Annotated[
        str,
        output_option(_FORMATS, "text: apply. yaml or json: print the objects, without a cluster."),
    ] = _FORMATS[0]


@with_options
def apply(options: ApplyOptions, fields: TeamOptions, access: AccessOptions) -> None:
    """Create or change a team: namespace, quotas, limits, network policies, roles, queue and priority classes."""
    checked(options.output, _FORMATS)
    teams = _teams(options.team, fields)
    if options.output in FOR_PROGRAMS:
        _print_objects(teams, options.output)
        return
    cluster = access.access_for_change()
    from shoal.cli.tenant_access import tenanting
    from shoal.wiring.tenants.applying import TenantObjects

    async def work(api: Api, writer: ServedWriter, clock: Clock) -> list[AppliedObject]:
        tenants = TenantObjects(api, writer, clock, is_dry_run=options.dry_run)
        return [done for team in teams for done in await tenants.apply(team, adopts=options.adopt)]

    _show(tenanting(cluster, work, is_dry_run=options.dry_run), is_dry_run=options.dry_run)


@dataclass(frozen=True, kw_only=True)
class DeleteOptions:
    team: Annotated[str, typer.Argument(metavar="TEAM", help="The name of the team.")]
    force: Annotated[bool, typer.Option("--force", help="Also while pods are in the namespace.")] = False
    dry_run: DryRun = False


@with_options
def delete(options: DeleteOptions, access: AccessOptions) -> None:
    """Delete a team: its namespace with everything in it, and its queue. Priority classes and flavors stay."""
    cluster = access.access_for_change()
    from shoal.cli.tenant_access import tenanting
    from shoal.wiring.tenants.applying import TenantObjects

    async def work(api: Api, writer: ServedWriter, clock: Clock) -> list[AppliedObject]:
        tenants = TenantObjects(api, writer, clock, is_dry_run=options.dry_run)
        return await tenants.delete(options.team, is_forced=options.force)

    _show(tenanting(cluster, work, is_dry_run=options.dry_run), is_dry_run=options.dry_run)


def _teams(name: str, fields: TeamOptions) -> list[Team]:
    from shoal.api.files import STANDARD_INPUT
    from shoal.policy.tenants.team import TEAM_KIND, TEAM_VERSION, read_team
    from shoal.units.errors import UserError, Where

    given = fields.spec()
    if name != STANDARD_INPUT and not name.endswith((".yaml", ".yml", ".json")) and "/" not in name:
        raw = {"apiVersion": TEAM_VERSION, "kind": TEAM_KIND, "metadata": {"name": name}, "spec": given}
        return [read_team(raw)]
    if given:
        fix = "write it in the file, or give a name instead of a file"
        raise UserError("is not for files", where=Where(path=f"--{next(iter(given))}"), fix=fix)
    from shoal.api.plain_objects import read_plain_objects

    read = read_plain_objects([name])
    if read.errors:
        raise read.errors[0]
    if not read.objects:
        fix = f"write apiVersion: {TEAM_VERSION} and kind: {TEAM_KIND}"
        raise UserError("contains no team", where=Where(file=name), fix=fix)
    return [read_team(plain.obj, plain.where) for plain in read.objects]


def _print_objects(teams: Sequence[Team], output: str) -> None:
    import sys

    import msgspec

    from shoal.policy.tenants.objects import TeamSurroundings, shared_objects, team_objects

    objects = shared_objects(teams[0])
    objects += [obj for team in teams[1:] for obj in shared_objects(team) if obj not in objects]
    objects += [obj for team in teams for obj in team_objects(team, TeamSurroundings())]
    if output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(listed), indent=1).decode() + "\n")
        return
    sys.stdout.write("---\n".join(msgspec.yaml.encode(obj).decode() for obj in objects))


def _show(done: Sequence[AppliedObject], *, is_dry_run: bool) -> None:
    from shoal.units.visible_text import visible

    suffix = " (server dry run)" if is_dry_run else ""
    for one in done:
        typer.echo(visible(f"{one.object} {one.change}{suffix}{f': {one.why}' if one.why else ''}"))


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """Those with a value; 0 is one."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}

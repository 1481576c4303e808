"""Implements `shoal tenant check`: whether a team is isolated, by attempts as a member of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import one_of
from shoal.cli.exit_codes import DONE, FAILED
from shoal.cli.formats import FOR_PROGRAMS, checked
from shoal.cli.known_names import check_known
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.client.port import Api
    from shoal.client.served_writer import ServedWriter
    from shoal.policy.tenants.isolation import IsolationRow

_FORMATS = ("table", *FOR_PROGRAMS)
_ROLES = ("developer", "admin", "viewer")


@dataclass(frozen=True, kw_only=True)
class IsolationOptions:
    team: Annotated[str, typer.Argument(metavar="TEAM", help="The name of the team.")]
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="Impersonate a member with this role: developer, admin or viewer.",
            autocompletion=one_of(_ROLES),
        ),
    ] = _ROLES[0]
    account: Annotated[
        str,
        typer.Option("--account", metavar="NAME", help="Use a token of this ServiceAccount of the team's namespace."),
    ] = ""
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FORMAT", help="table, json or yaml.", autocompletion=one_of(_FORMATS)),
    ] = _FORMATS[0]


@with_options
def check(options: IsolationOptions, access: AccessOptions) -> None:
    """Attempt, as a member of a team, what the team must not be able to do; the server keeps nothing of it."""
    from shoal.cli.cluster_access import announce, named
    from shoal.cli.formats import console, write
    from shoal.cli.tenant_access import tenanting
    from shoal.units.errors import Where

    checked(options.output, _FORMATS)
    check_known(options.role, _ROLES, "role", Where(path="--role"))
    cluster = access.access()
    announce(cluster)

    rows = tenanting(cluster, lambda api, writer, _: _rows(options, cluster, api, writer))
    if options.output in FOR_PROGRAMS:
        write({"team": options.team, "rows": rows}, options.output, named(cluster))
    else:
        from shoal.views.tenant_tables import show_isolation

        show_isolation(console(), rows)
    raise typer.Exit(FAILED if any(row.is_wrong for row in rows) else DONE)


async def _rows(options: IsolationOptions, cluster: Access, api: Api, writer: ServedWriter) -> list[IsolationRow]:
    from msgspec import structs

    from shoal.cli.tenant_access import client
    from shoal.policy.tenants.team import ROLES
    from shoal.wiring.tenants.isolation_check import account_token, isolation_rows, member, team_facts

    facts = await team_facts(api, options.team)
    kept = tuple(one for one in cluster.headers if not one[0].startswith("Impersonate-"))
    role = None if options.account else next(one for one in ROLES if one == options.role)
    if role is None:
        token = await account_token(api, facts.namespace, options.account)
        as_team = structs.replace(cluster.without_user(), token=token)
    else:
        found = await member(api, facts, role)
        headers = (("Impersonate-User", found.user), *(("Impersonate-Group", group) for group in found.groups))
        as_team = structs.replace(cluster, headers=(*kept, *headers))
    team_api = client(as_team, is_dry_run=True)
    try:
        return await isolation_rows(team_api, writer, facts, role)
    finally:
        await team_api.close()

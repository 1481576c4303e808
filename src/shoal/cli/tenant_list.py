"""Implements `shoal tenant list`: the teams of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.formats import FOR_PROGRAMS, checked, output_option
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.client.clock import Clock
    from shoal.client.port import Api
    from shoal.client.served_writer import ServedWriter
    from shoal.policy.tenants.team_rows import TeamRow

_BUDGETS = "budgets"
_FORMATS = ("table", *FOR_PROGRAMS, _BUDGETS)


@dataclass(frozen=True, kw_only=True)
class TeamList:
    output: Annotated[
        str,
        output_option(_FORMATS, "table, json, yaml, or budgets: the budgets as a part of a price file of shoal cost."),
    ] = _FORMATS[0]


@with_options
def list_teams(options: TeamList, access: AccessOptions) -> None:
    """List the teams with their use of quota, queue, budget, the end of a grant, and open requests."""
    checked(options.output, _FORMATS)
    cluster = access.access()
    from shoal.cli.cluster_access import announce, named
    from shoal.cli.formats import console, write
    from shoal.cli.tenant_access import tenanting

    announce(cluster)
    rows = tenanting(cluster, _rows)
    if options.output == _BUDGETS:
        import sys

        import msgspec

        budgets = [
            {
                "team": row.team,
                "perMonth": row.budget,
                **({"enforce": row.budget_enforced} if row.budget_enforced else {}),
            }
            for row in rows
            if row.budget
        ]
        sys.stdout.write(msgspec.yaml.encode({"budgets": budgets}).decode())
    elif options.output in FOR_PROGRAMS:
        write({"teams": rows}, options.output, named(cluster))
    else:
        from shoal.views.tenant_tables import show_teams

        show_teams(console(), rows)


async def _rows(api: Api, writer: ServedWriter, clock: Clock) -> list[TeamRow]:
    from shoal.client.kind import NAMESPACES
    from shoal.client.port import Select
    from shoal.policy.tenants.labels import SELECTOR
    from shoal.policy.tenants.team_rows import team_rows
    from shoal.wiring.tenants.quota_requests import QUOTAS, QuotaRequests

    chosen = Select(labels=SELECTOR)
    namespaces = [item.obj() for item in (await api.list(NAMESPACES, "", chosen)).items]
    quotas = [item.obj() for item in (await api.list(QUOTAS, "", chosen)).items]
    requests = await QuotaRequests(api, writer, clock).listed()
    return team_rows(namespaces, quotas, requests)

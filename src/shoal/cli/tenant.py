"""`shoal tenant`: namespaces of teams with their quotas, isolation, roles and queues; requests for more quota."""

from __future__ import annotations

import typer

from shoal.cli.lazy_commands import CommandEntry, LazyGroup

_TEAMS, _QUOTA = "Teams", "More quota for a time"


class TenantCommands(LazyGroup):
    entries = (
        CommandEntry(
            "apply",
            "shoal.cli.tenant_apply:apply",
            _TEAMS,
            "Create or change a team: namespace, quotas, network policies, roles, queue; from a file or options.",
        ),
        CommandEntry(
            "list",
            "shoal.cli.tenant_list:list_teams",
            _TEAMS,
            "List the teams with their use of quota, queue, budget and open requests.",
        ),
        CommandEntry(
            "check",
            "shoal.cli.tenant_check:check",
            _TEAMS,
            "Check that a team is isolated: attempt, as a member of it, what it must not be able to do.",
        ),
        CommandEntry(
            "delete",
            "shoal.cli.tenant_apply:delete",
            _TEAMS,
            "Delete a team: its namespace with everything in it, and its queue.",
        ),
        CommandEntry("request", "shoal.cli.tenant_quota:request", _QUOTA, "Ask for more GPUs for a team."),
        CommandEntry("requests", "shoal.cli.tenant_quota:requests", _QUOTA, "List requests for more quota."),
        CommandEntry("approve", "shoal.cli.tenant_quota:approve", _QUOTA, "Grant a request for more quota."),
        CommandEntry("deny", "shoal.cli.tenant_quota:deny", _QUOTA, "Deny a request for more quota."),
        CommandEntry("expire", "shoal.cli.tenant_quota:expire", _QUOTA, "End the grants whose time is over."),
    )


app = typer.Typer(rich_markup_mode=None, add_completion=False, cls=TenantCommands)


@app.callback()
def tenant() -> None:
    """Create, list, check and delete teams that share a cluster, and grant them more quota for a time."""

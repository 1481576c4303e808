"""Implements `shoal tenant request`, `requests`, `approve`, `deny` and `expire`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.formats import FOR_PROGRAMS, TEXTS, TextOutput, checked
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.client.clock import Clock
    from shoal.client.port import Api
    from shoal.client.served_writer import ServedWriter
    from shoal.policy.tenants.grants import QuotaGrant

_TeamName = Annotated[str, typer.Argument(metavar="TEAM", help="The name of the team.")]
_RequestName = Annotated[str, typer.Argument(metavar="REQUEST", help="As shoal tenant requests lists it.")]
_Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")]


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    team: _TeamName
    gpus: Annotated[
        int | None, typer.Option("--gpus", metavar="N", min=0, help="The new number of GPUs, not the addition.")
    ] = None
    resource: Annotated[
        list[str] | None,
        typer.Option("--resource", metavar="NAME=N", help="The new number of other devices; repeatable."),
    ] = None
    life: Annotated[str, typer.Option("--for", metavar="TIME", help="How long: 12h, 7d. By default without end.")] = ""
    reason: _Reason = ""


@with_options
def request(options: RequestOptions, access: AccessOptions) -> None:
    """Ask for more GPUs for a team. The request is an object of its namespace, which an administrator approves."""
    from shoal.cli.device_amounts import device_amounts
    from shoal.cli.tenant_access import tenanting
    from shoal.policy.tenants.team import GPU
    from shoal.units.errors import UserError, Where
    from shoal.wiring.tenants.quota_requests import QuotaRequests, namespace_of

    devices = device_amounts(options.resource, "--resource")
    if options.gpus is not None:
        devices = {GPU: options.gpus, **devices}
    if not devices:
        raise UserError("no amount is asked for", where=Where(path="--gpus"), fix="give --gpus or --resource")
    life_s = _life_s(options.life)

    async def work(api: Api, writer: ServedWriter, clock: Clock) -> str:
        namespace = await namespace_of(api, options.team)
        return await QuotaRequests(api, writer, clock).ask(namespace, devices, life_s, options.reason)

    name = tenanting(access.access_for_change(), work)
    typer.echo(f"{name}: shoal tenant approve {options.team} {name}")


@dataclass(frozen=True, kw_only=True)
class RequestList:
    output: TextOutput = TEXTS[0]


@with_options
def requests(options: RequestList, access: AccessOptions) -> None:
    """List requests for more quota: who asks for what, until when, and what was decided."""
    from shoal.cli.cluster_access import announce
    from shoal.cli.formats import console, write
    from shoal.cli.tenant_access import tenanting
    from shoal.policy.tenants.grants import request_rows
    from shoal.views.tenant_tables import show_requests
    from shoal.wiring.tenants.quota_requests import QuotaRequests

    checked(options.output, TEXTS)
    cluster = access.access()
    announce(cluster)
    found = tenanting(cluster, lambda api, writer, clock: QuotaRequests(api, writer, clock).listed())
    rows = request_rows(found)
    if options.output in FOR_PROGRAMS:
        write({"requests": rows}, options.output)
        return
    show_requests(
        console(),
        ((row.namespace, row.name, row.state, row.devices, row.asked_by, row.until, row.reason) for row in rows),
    )


@dataclass(frozen=True, kw_only=True)
class ApproveOptions:
    team: _TeamName
    name: _RequestName
    life: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long instead of as asked: 12h, 7d; 0 is without end.")
    ] = ""


@with_options
def approve(options: ApproveOptions, access: AccessOptions) -> None:
    """Grant a request: raise the quota and the queue of the team, and record who granted it and until when."""
    from shoal.cli.tenant_access import tenanting
    from shoal.wiring.tenants.quota_requests import QuotaRequests, namespace_of

    life_s = _life_s(options.life) if options.life else None

    async def work(api: Api, writer: ServedWriter, clock: Clock) -> QuotaGrant:
        namespace = await namespace_of(api, options.team)
        return await QuotaRequests(api, writer, clock).approve(namespace, options.name, life_s)

    grant = tenanting(access.access_for_change(), work)
    end = f" until {grant.until}" if grant.until else ""
    amounts = ", ".join(f"{amount} {name}" for name, amount in grant.devices.items())
    typer.echo(f"{options.team} has {amounts}{end}")


@dataclass(frozen=True, kw_only=True)
class DenyOptions:
    team: _TeamName
    name: _RequestName
    reason: _Reason = ""


@with_options
def deny(options: DenyOptions, access: AccessOptions) -> None:
    """Deny a request for more quota."""
    from shoal.cli.tenant_access import tenanting
    from shoal.wiring.tenants.quota_requests import QuotaRequests, namespace_of

    async def work(api: Api, writer: ServedWriter, clock: Clock) -> None:
        namespace = await namespace_of(api, options.team)
        await QuotaRequests(api, writer, clock).deny(namespace, options.name, options.reason)

    tenanting(access.access_for_change(), work)
    typer.echo(f"{options.name} is denied")


@with_options
def expire(access: AccessOptions) -> None:
    """End the grants whose time is over: quota and queue become what they were. A running Shoal does it by itself."""
    from shoal.cli.tenant_access import tenanting
    from shoal.wiring.tenants.quota_requests import QuotaRequests

    ended = tenanting(access.access_for_change(), lambda api, writer, clock: QuotaRequests(api, writer, clock).expire())
    for namespace, grant in ended:
        typer.echo(f"{namespace}: the grant of {grant.request} ended at {grant.until}")
    if not ended:
        typer.echo("no grant is over")


def _life_s(text: str) -> float:
    """0 for none. Raises UserError."""
    from shoal.units.durations import DurationError, nanoseconds
    from shoal.units.errors import UserError, Where, excerpt

    if text in ("", "0"):
        return 0.0
    days = text.removesuffix("d")
    try:
        found = int(days) * 86_400.0 if days != text and days.isdecimal() else nanoseconds(text) / 10**9
    except DurationError:
        found = 0.0
    if not 0 < found < 10**9:
        raise UserError(f"{excerpt(text)} is no length of time", where=Where(path="--for"), fix="as in 12h or 7d")
    return found

"""Implements `shoal scale import|mode|iam`: pools of other tools, how far pools are managed, and rights in a cloud."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.cluster_access import AccessOptions, speak
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.client.port import Api

_MOST_BYTES = 16 << 20
_MANIFESTS = (".yaml", ".yml", ".json")
_STDIN = "-"


class ScalingMode(StrEnum):
    """A test compares it with autoscale/nodes/pool_modes.py."""

    ACTIVE = "active"
    DRY_RUN = "dry-run"
    PAUSED = "paused"


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND...",
            help="After --: a command of eksctl or gcloud, or of Cluster Autoscaler with --nodes=min:max:name.",
            show_default=False,
        ),
    ] = None
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--filename",
            metavar="PATH",
            help="A script of such commands, or YAML: a ClusterConfig, the Deployment of Cluster Autoscaler; or -.",
        ),
    ] = None


@with_options
def import_pools(options: ImportOptions) -> None:
    """Convert node groups of eksctl, gcloud or Cluster Autoscaler to NodePools, as YAML.

    What a NodePool cannot express is a warning on stderr.
    """
    from shoal.api.yaml_out import to_yaml
    from shoal.autoscale.pool_import.sources import pools_of
    from shoal.cli.manifests import warn

    commands = [list(options.command)] if options.command else []
    documents: list[dict[str, Any]] = []
    for path in options.filename or ():
        _read(path, commands, documents)
    if not commands and not documents:
        raise UserError("nothing to import", fix="give -f FILE, or a command after --")
    found = pools_of(commands, documents)
    warn(found.warnings)
    typer.echo("---\n".join(to_yaml(pool) for pool in found.pools), nl=False)


def _read(path: str, commands: list[list[str]], documents: list[dict[str, Any]]) -> None:
    from shoal.api.files import read_whole
    from shoal.api.yaml_text import read_yaml
    from shoal.autoscale.pool_import.sources import command_lines

    if path == _STDIN:
        text = sys.stdin.read(_MOST_BYTES)
    else:
        text = read_whole(Path(path).expanduser(), _MOST_BYTES).decode()
    try:
        if not path.endswith(_MANIFESTS) and "apiVersion:" not in text:
            commands += command_lines(text)
            return
    except UserError as error:
        raise error.at(Where(file=path)) from error
    for number, value in read_yaml(text, path):
        if not isinstance(value, dict):
            raise UserError("is no object", where=Where(file=path, document=number))
        documents.append(value)


@dataclass(frozen=True, kw_only=True)
class ModeOptions:
    mode: Annotated[ScalingMode, typer.Argument(metavar="MODE", help="active, dry-run or paused.", show_default=False)]
    pools: Annotated[
        list[str] | None,
        typer.Argument(metavar="POOL...", help="The NodePools; without a name all of them.", show_default=False),
    ] = None


@with_options
def mode(options: ModeOptions, access: AccessOptions) -> None:
    """Pause node scaling, let it say what it would do, or let it work: for all NodePools, or those that are named.

    A paused pool gets no node and loses none. `shoal scale mode paused` stops node scaling at once.
    """
    changed = speak(access.access_for_change(), lambda api: _set_modes(api, options.mode.value, options.pools or ()))
    for name in changed:
        typer.echo(f"nodepool {name} is {options.mode.value}")
    if not changed:
        typer.echo("there is no NodePool", err=True)


async def _set_modes(api: Api, wanted: str, names: list[str] | tuple[str, ...]) -> list[str]:
    from shoal.autoscale.nodes.pool_modes import MODE
    from shoal.client.ecosystem_kinds import NODE_POOLS
    from shoal.client.port import Patch
    from shoal.units.near_texts import near_texts

    there = [item.name for item in (await api.list(NODE_POOLS)).items]
    for name in names:
        if name not in there:
            near = near_texts(name, there)
            raise UserError(f"there is no NodePool {name}", fix=f"did you mean {near[0]}?" if near else "")
    chosen = list(names) or there
    for name in chosen:
        body = {"metadata": {"annotations": {MODE: None if wanted == "active" else wanted}}}
        await api.patch(NODE_POOLS, "", name, Patch("merge", body))
    return chosen


@dataclass(frozen=True, kw_only=True)
class IamOptions:
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="The name of the cluster.", show_default=False)]
    region: Annotated[str, typer.Option(metavar="REGION", help="The AWS region; by default any.")] = "*"
    account: Annotated[str, typer.Option(metavar="ID", help="The AWS account; by default any.")] = "*"
    node_role: Annotated[
        str, typer.Option("--node-role", metavar="NAME", help="The role of the nodes, which instances get.")
    ] = ""
    interruption_queue: Annotated[
        str, typer.Option("--interruption-queue", metavar="NAME", help="The SQS queue with notices of interruptions.")
    ] = ""


@with_options
def iam(options: IamOptions) -> None:
    """Print the least policy that node scaling needs on AWS, as JSON."""
    import json

    from shoal.cloud.ec2_policy import PolicyScope, iam_policy

    scope = PolicyScope(options.cluster, options.region, options.account, options.node_role, options.interruption_queue)
    typer.echo(json.dumps(iam_policy(scope), indent=2))

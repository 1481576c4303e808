"""Implements `shoal dashboards`: prints dashboards of Grafana as JSON, or as ConfigMaps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.completion_values import one_of
from shoal.cli.option_groups import with_options

_NAMES = ("fleet", "node", "mig", "queues", "cost")
"""A test compares them with the dashboards."""


class DashboardFormat(StrEnum):
    JSON = "json"
    OBJECTS = "objects"


@dataclass(frozen=True, kw_only=True)
class DashboardOptions:
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help=f"{', '.join(_NAMES)}; without any, all.", autocompletion=one_of(_NAMES)
        ),
    ] = None
    output: Annotated[
        DashboardFormat,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT",
            help="json: one dashboard, as Grafana imports it. objects: ConfigMaps for the sidecar of Grafana's chart.",
        ),
    ] = DashboardFormat.JSON
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="The namespace of the ConfigMaps.")
    ] = "monitoring"
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="Write a file NAME.json for each dashboard into this folder."),
    ] = None


@with_options
def dashboards(options: DashboardOptions) -> None:
    """Print dashboards for Grafana: shoal dashboards -o objects | kubectl apply -f -."""
    import sys

    import msgspec

    from shoal.cli.known_names import check_known
    from shoal.policy.dashboards import DASHBOARDS
    from shoal.policy.dashboards.grafana import config_map, grafana_json
    from shoal.units.errors import UserError, Where

    for name in options.names or ():
        check_known(name, _NAMES, "dashboard", Where(path="NAME"))
    chosen = [one for one in DASHBOARDS if not options.names or one.name in options.names]
    if options.folder is not None:
        _write(options.folder.expanduser(), {one.name: _json(grafana_json(one)) for one in chosen})
    elif options.output is DashboardFormat.OBJECTS:
        texts = (msgspec.yaml.encode(config_map(one, options.namespace)).decode() for one in chosen)
        sys.stdout.write("---\n".join(texts))
    elif len(chosen) > 1:
        fix = "name one dashboard, or write all of them with --folder DIR"
        raise UserError(f"Grafana imports one dashboard at a time: {', '.join(_NAMES)}", fix=fix)
    else:
        sys.stdout.write(_json(grafana_json(chosen[0])))


def _json(value: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _write(folder: Path, texts: dict[str, str]) -> None:
    from shoal.cli.output_file import OutFile
    from shoal.units.errors import UserError, Where

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot be made: {error.strerror}", where=Where(file=str(folder))) from error
    for name, text in texts.items():
        OutFile(folder / f"{name}.json").write(text)
    typer.echo(f"shoal: wrote {', '.join(f'{name}.json' for name in texts)} into {folder}", err=True)

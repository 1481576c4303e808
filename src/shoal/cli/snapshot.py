"""Implements `shoal snapshot`: writes all objects that decisions depend on to one file, without confidential data."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import one_of
from shoal.cli.formats import FOR_PROGRAMS
from shoal.cli.option_groups import with_options
from shoal.cli.progress import long_work

_STANDARD_OUTPUT = "-"
_BY_NAME = ""


@dataclass(frozen=True, kw_only=True)
class SnapshotOptions:
    file: Annotated[
        str,
        typer.Option("--file", metavar="FILE", help="The file to write; - for stdout."),
    ] = _STANDARD_OUTPUT
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            help="json or yaml. By default yaml for a file that ends in .yaml or .yml, else json.",
            autocompletion=one_of(FOR_PROGRAMS),
        ),
    ] = _BY_NAME
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config", metavar="FILE", help="The configuration file of `shoal run`, which configures the queues."
        ),
    ] = None

    def target(self) -> tuple[str, str]:
        """The file and the format. Until the next release a file name behind -o is understood, with a warning."""
        file, form = self.file, self.output
        if form not in (_BY_NAME, *FOR_PROGRAMS):
            typer.echo(f"shoal: warning: -o is the format now, json or yaml: use --file {form}", err=True)
            file, form = form, _BY_NAME
        is_yaml = Path(file).suffix.lower() in (".yaml", ".yml")
        return file, form or ("yaml" if is_yaml else "json")


@with_options
def snapshot(options: SnapshotOptions, access: AccessOptions) -> None:
    """Write what decisions depend on to a file, without secrets; decide, why, queue, top and get read it with -f."""
    from shoal.cli.cluster_access import announce
    from shoal.cli.object_source import taken
    from shoal.cli.output_file import OutFile
    from shoal.cli.run_files import read_run_files
    from shoal.store.snapshot.reading import QueueRuling

    name, form = options.target()
    files = read_run_files(options.config or [])
    ruling = QueueRuling(files.own.namespaces.kueue, files.kueue, files.own if options.config else None)
    file = None if name == _STANDARD_OUTPUT else OutFile(Path(name), is_private=True)
    cluster = access.access()
    announce(cluster)
    picture, _ = taken(cluster, ruling=ruling)
    with long_work("writing the snapshot"):
        written = picture.to_yaml() if form == "yaml" else picture.to_json()
        if file is None:
            sys.stdout.write(written.decode())
            return
        size = file.write(written)
    typer.echo(f"{len(picture.entries):,} objects, {_size(size)}, in {name}", err=True)


def _size(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB" if size >= 1 << 20 else f"{size / 1024:,.0f} KiB"

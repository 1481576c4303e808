"""Implements `shoal snapshot`: writes all objects that decisions depend on to one file, without confidential data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.cluster_access import Kubeconfig, KubeContext, chosen_access

_STANDARD_OUTPUT = "-"


def snapshot(
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="The file to write, .json or .yaml; - for stdout."),
    ] = _STANDARD_OUTPUT,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config", metavar="FILE", help="The configuration file of `shoal run`, which configures the queues."
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: KubeContext = "",
) -> None:
    """Write what decisions depend on to a file, without secrets; decide, why, queue, top and get read it with -f."""
    from shoal.cli.object_source import taken
    from shoal.cli.output_file import OutFile
    from shoal.cli.run_files import read_run_files
    from shoal.store.snapshot.reading import QueueRuling

    files = read_run_files(config or [])
    ruling = QueueRuling(files.own.namespaces.kueue, files.kueue)
    file = None if output == _STANDARD_OUTPUT else OutFile(Path(output), is_private=True)
    picture, _ = taken(chosen_access(kubeconfig, context), ruling=ruling)
    if file is None:
        sys.stdout.write(picture.to_json().decode())
        return
    is_yaml = file.path.suffix.lower() in (".yaml", ".yml")
    size = file.write(picture.to_yaml() if is_yaml else picture.to_json())
    typer.echo(f"{len(picture.entries):,} objects, {_size(size)}, in {output}", err=True)


def _size(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB" if size >= 1 << 20 else f"{size / 1024:,.0f} KiB"

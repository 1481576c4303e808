"""`shoal install images`: the images that an installation with these values needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from shoal.install.values.reading import ChartValues


def print_images(values: ChartValues, output: str) -> None:
    """One image a line; with `-o json` a list."""
    from shoal import __version__
    from shoal.cli.formats import write
    from shoal.install.images import needed_images

    images = needed_images(values, __version__)
    if output == "json":
        write({"images": images}, output)
        return
    for image in images:
        typer.echo(image)

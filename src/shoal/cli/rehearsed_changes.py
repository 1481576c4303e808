"""Prints what a rehearsed upgrade would change, and why it would fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.wiring.installation.rehearsal import Rehearsal

_SHOWN = ("customresourcedefinitions", "nodes", "pods")
_MOST = 5


def show_rehearsal(found: Rehearsal) -> None:
    others = sum(count for name, count in found.copied.items() if name not in _SHOWN)
    counts = [f"{found.copied.get(name, 0)} {name}" for name in _SHOWN]
    typer.echo(f"copied {', '.join(counts)} and {others} other objects")
    for text in found.not_copied[:_MOST]:
        typer.echo(visible(f"not copied: {text}"))
    if len(found.not_copied) > _MOST:
        typer.echo(f"not copied: {len(found.not_copied) - _MOST} others")
    for text in found.told:
        typer.echo(visible(text))
    for change in found.changes:
        typer.echo(visible(f"{change.sign} {change.address}"))
        if change.address.kind == "CustomResourceDefinition":
            continue
        for field in change.fields:
            typer.echo(visible(f"    {field}"))
    if not found.changes:
        typer.echo("nothing would change")
    for address in found.replaced:
        typer.echo(visible(f"pods are replaced: {address}"))
    for text in found.failures:
        typer.echo(visible(f"would fail: {text}"), err=True)

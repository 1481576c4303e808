"""Implements `shoal explain` and `shoal xid`: a paragraph about a term, label, resource, metric, error or machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.formats import TEXTS, TextOutput

if TYPE_CHECKING:
    from shoal.views.explained_subjects import Explained


def _subjects(incomplete: str) -> list[str]:
    from shoal.views.explained_subjects import all_subjects

    return [name for name in all_subjects() if name.lower().startswith(incomplete.lower())]


def explain(
    subject: Annotated[
        list[str],
        typer.Argument(
            metavar="SUBJECT...",
            help="A term, label, resource, metric, variable, GPU, instance type or error message.",
            autocompletion=_subjects,
            show_default=False,
        ),
    ],
    output: TextOutput = TEXTS[0],
) -> None:
    """Explain a term, a label, a resource, a metric or an error in a paragraph, without a cluster."""
    from shoal.units.errors import UserError, Where, excerpt
    from shoal.views.explained_subjects import explained, similar_subjects

    text = " ".join(subject)
    found = explained(text)
    if not found:
        near = similar_subjects(text)
        fix = f"did you mean {' or '.join(near)}?" if near else "use another word for it; --help has what is explained"
        raise UserError(f"{excerpt(text)} is not explained", where=Where(path="SUBJECT"), fix=fix)
    _show(found, output)


def xid(
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=0, max=999_999, help="The number of the Xid error.")],
    output: TextOutput = TEXTS[0],
) -> None:
    """Tell what an Xid error of a GPU means, which programs it ends, and what to do."""
    from shoal.devices.xids import xid_of
    from shoal.views.explained_subjects import Explained, xid_text

    _show([Explained(f"Xid {number}", "error", xid_text(xid_of(number)))], output)


def _show(found: list[Explained], output: str) -> None:
    from shoal.cli.formats import FOR_PROGRAMS, checked, console, write

    if checked(output, TEXTS) in FOR_PROGRAMS:
        write(found, output)
        return
    printer = console(is_folded=True)
    for index, each in enumerate(found):
        printer.print(f"{'' if index == 0 else chr(10)}{each.subject} ({each.kind})", markup=False)
        printer.print(f"  {each.text}", markup=False)

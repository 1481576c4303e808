"""Writes the corrections of `shoal lint --fix` into the files. Each file is replaced whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from shoal.api.plain_objects import PlainObjects
    from shoal.policy.findings import LintFinding
    from shoal.policy.lint import Checked


def fix_files(found: Sequence[LintFinding], read: PlainObjects, check: Callable[[PlainObjects], Checked]) -> None:
    """`check` checks a set of files like the one that was read. Says on stderr what was changed."""
    from shoal.cli.output_file import OutFile
    from shoal.policy.corrections import corrected

    for file in dict.fromkeys(each.file for each in found if each.correction is not None):
        if not Path(file).is_file():
            # What a chart or a kustomization renders to is no file of the user.
            continue
        mine = [each for each in found if each.file == file]
        text = read.data[file].decode("utf-8")
        changed, done = corrected(text, mine, partial(_findings, file, read, check))
        if done:
            OutFile(Path(file)).write(changed)
        for each in done:
            typer.echo(f"{file}:{each.line}: corrected {each.id} {each.rule}: {each.fix}", err=True)


def _findings(
    file: str, read: PlainObjects, check: Callable[[PlainObjects], Checked], text: str
) -> Sequence[LintFinding] | None:
    """Of the file with another text, beside the other files; None if the text cannot be read."""
    from shoal.api.plain_objects import PlainObjects, add_file

    others = PlainObjects(
        [each for each in read.objects if each.where.file != file],
        [each for each in read.others if each.where.file != file],
        [],
        [],
        {name: data for name, data in read.data.items() if name != file},
    )
    add_file(others, file, text.encode())
    return None if others.errors else [each for each in check(others).findings if each.file == file]

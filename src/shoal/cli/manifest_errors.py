"""Collects the errors of manifests, so that a command reports all of them and answers for the rest.

Guarantees: an object with an error is left out with everything that it would create, and is reported in one line; the
command ends with the exit code for wrong input after it has printed its answer.

Rejected: ending at the first error. A folder of a hundred manifests would need a run for each of its mistakes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from shoal.cli.exit_codes import WRONG_INPUT, end_with
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.api.decode import Document

T = TypeVar("T")
_MOST_LINES = 20
_MOST_CONTRADICTIONS = 50
"""Each costs a reading of everything."""


def read_valid(
    read: Callable[[Callable[[UserError], None]], list[Document]], load: Callable[[Sequence[Document]], T]
) -> tuple[list[Document], T, list[UserError]]:
    """The objects without an error, what was loaded from them, and the errors. Raises the only error if no object is
    valid."""
    errors: list[UserError] = []
    documents = read(errors.append)
    for _ in range(_MOST_CONTRADICTIONS):
        if errors and not documents:
            report_errors(errors[:-1])
            raise errors[-1]
        try:
            return documents, load(documents), errors
        except UserError as error:
            left = [document for document in documents if not _is_at(document.where, error.where)]
            if len(left) == len(documents):
                report_errors(errors)
                raise
            errors.append(error)
            documents = left
    report_errors(errors)
    raise UserError(
        f"more than {_MOST_CONTRADICTIONS} objects contradict others or themselves", fix="correct those that are named"
    )


def report_errors(errors: Sequence[UserError]) -> None:
    """One line on standard error for each; the command then ends with the exit code for wrong input."""
    if not errors:
        return
    for error in errors[:_MOST_LINES]:
        sys.stderr.write(f"shoal: {error}\n")
    more = len(errors) - _MOST_LINES
    if more > 0:
        sys.stderr.write(f"shoal: and {more:,} more errors; shoal decide -o json lists all of them\n")
    end_with(WRONG_INPUT)


def _is_at(document: Where, error: Where) -> bool:
    return (document.file, document.document, document.obj) == (error.file, error.document, error.obj)

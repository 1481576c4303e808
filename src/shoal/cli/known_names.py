"""Checks comma-separated names against the known ones. The error for an unknown name gives the most similar one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from shoal.units.errors import UserError, Where, excerpt


def named(text: str, known: Sequence[str], option: str = "--controllers", what: str = "controller") -> tuple[str, ...]:
    """Each once, in their order; empty for an empty text."""
    names = tuple(dict.fromkeys(part for name in text.split(",") if (part := name.strip())))
    for name in names:
        check_known(name, known, what, Where(path=option))
    return names


def check_known(name: str, known: Sequence[str], what: str, where: Where) -> None:
    """Raises UserError for a name that is none of them."""
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        fix = f"did you mean {near[0]}?" if near else f"choose among {', '.join(known)}"
        raise UserError(f"{what} {excerpt(name)} not found", where=where, fix=fix)

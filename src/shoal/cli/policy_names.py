"""Parses policy names: any case, several joined by commas, `all` for all policies.

Rejected: an option of fixed choices. It cannot hold a list, and its error does not guess what was meant.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from shoal.units.errors import UserError, Where

_ALL = "all"


def parse_policies(text: str, known: Sequence[str]) -> list[str]:
    """The canonical names in the order given, each once."""
    canonical = {name.lower(): name for name in known}
    chosen: list[str] = []
    for part in text.split(","):
        typed = part.strip()
        if typed.lower() == _ALL:
            chosen += known
        elif typed.lower() in canonical:
            chosen.append(canonical[typed.lower()])
        else:
            raise _unknown(typed, canonical)
    return list(dict.fromkeys(chosen))


def _unknown(typed: str, canonical: dict[str, str]) -> UserError:
    names = ", ".join(canonical.values())
    close = difflib.get_close_matches(typed.lower(), canonical, n=1)
    what = f'"{typed}" is not a policy' if typed else "a policy name is empty"
    fix = f"did you mean {canonical[close[0]]}? The policies are {names}" if close else f"the policies are {names}"
    return UserError(what, where=Where(path="--policy"), fix=fix)

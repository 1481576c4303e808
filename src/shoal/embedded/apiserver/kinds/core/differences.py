"""Describes the refused changes of immutable fields."""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver.kinds.complaints import Obj


def difference(kind: str, new: Obj, old: Obj) -> str:
    """One line for each side of each field. Kubernetes prints Go's own notation here, which nothing can rely on."""
    lines = [f"  {kind}{{"]
    for key in sorted({*new, *old}):
        if new.get(key) != old.get(key):
            named = key[:1].upper() + key[1:]
            shown = (
                (sign, msgspec.json.encode(side[key]).decode())
                for sign, side in (("-", old), ("+", new))
                if key in side
            )
            lines += [f"{sign} \t{named}: {text}," for sign, text in shown]
    return "\n".join([*lines, "  }", ""])

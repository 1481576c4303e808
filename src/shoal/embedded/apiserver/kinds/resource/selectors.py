"""CEL selectors of devices: what does not compile is refused when it is written."""

from __future__ import annotations

from functools import lru_cache

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, required, too_long, too_many
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj

_MOST = 32
_LONGEST = 10 * 1024
_HIGHEST_COST = 1_000_000
_TOO_COMPLEX = "too complex, exceeds cost limit"


def check_selectors(selectors: list[Obj], path: str, errors: Errors, *, is_stored: bool = False) -> None:
    if len(selectors) > _MOST:
        errors.append(too_many(path, len(selectors), _MOST))
        return
    for place, selector in enumerate(selectors):
        here = f"{path}[{place}].cel"
        if (cel := selector.get("cel")) is None:
            errors.append(required(here))
        elif not is_stored and (found := _complaint(cel.get("expression", ""), f"{here}.expression")):
            errors.append(found)


def _complaint(text: str, path: str) -> FieldError | None:
    if len(text.encode()) > _LONGEST:
        return too_long(path, _LONGEST)
    fault = _fault(text)
    if not fault:
        return None
    return not_allowed(path, fault) if fault is _TOO_COMPLEX else bad_value(path, text, fault)


@lru_cache(maxsize=1024)
def _fault(text: str) -> str:
    # Loaded when first needed: it takes a tenth of a second that a cluster without claims does not pay at its start.
    from shoal.embedded.apiserver.cel import CelFault, compile_expression
    from shoal.embedded.apiserver.cel.kinds import BOOL, DYN, STRING, CelType

    device = CelType("object")
    named = CelType("map", CelType("map", DYN))
    device.fields = {"driver": STRING, "attributes": named, "capacity": named, "allowMultipleAllocations": BOOL}
    try:
        program = compile_expression(text, {"device": device}, "any")
    except CelFault as fault:
        return f"compilation failed: {fault}"
    if program.kind.name not in ("bool", "dyn"):
        return f"must evaluate to bool or the unknown type, not {program.kind.shown()}"
    return _TOO_COMPLEX if program.cost > _HIGHEST_COST else ""

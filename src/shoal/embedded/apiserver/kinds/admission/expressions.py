"""The expressions of webhooks and policies, compiled when they are written so that nothing is left to be ignored.

`shoal.embedded.apiserver.dynamic` compiles and evaluates them. It is imported when the first expression is written:
it takes a tenth of a second that most clusters never pay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, required, too_many
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import label_key_faults

if TYPE_CHECKING:
    from shoal.embedded.apiserver.cel.kinds import CelType

_MOST_CONDITIONS = 64


def visible(*, has_params: bool, has_authorizer: bool = True) -> dict[str, CelType]:
    from shoal.embedded.apiserver.admission_expressions import AUTHORIZER, BASE, PARAMS

    found = dict(BASE)
    if has_params:
        found["params"] = PARAMS
    if has_authorizer:
        found["authorizer"] = AUTHORIZER
    return found


def expression_fault(text: str, kinds: dict[str, CelType], results: tuple[str, ...], *, mutates: bool = False) -> str:
    """Why an expression is refused. `results` are the types it may come to; none means any."""
    from shoal.embedded.apiserver.admission_expressions import Expression

    made = Expression(text, kinds, "any", mutates=mutates)
    if made.fault:
        return made.fault
    if not results or made.kind.name == "dyn" or made.kind.shown() in results or made.kind.name in results:
        return ""
    wanted = results[0] if len(results) == 1 else f"one of [{' '.join(results)}]"
    return f"must evaluate to {wanted}"


def check_expression(text: str, kinds: dict[str, CelType], results: tuple[str, ...], path: str, errors: Errors) -> None:
    if fault := expression_fault(text, kinds, results):
        errors.append(bad_value(path, text, fault))


def check_match_conditions(conditions: list[Obj], path: str, errors: Errors, *, has_params: bool = False) -> None:
    if len(conditions) > _MOST_CONDITIONS:
        errors.append(too_many(path, len(conditions), _MOST_CONDITIONS))
    names: set[str] = set()
    for place, one in enumerate(conditions):
        here, name, text = f"{path}[{place}]", one.get("name", ""), one.get("expression", "").strip()
        if text:
            check_expression(text, visible(has_params=has_params), ("bool",), f"{here}.expression", errors)
        else:
            errors.append(required(f"{here}.expression"))
        if not name:
            errors.append(required(f"{here}.name"))
            continue
        add_faults(errors, f"{here}.name", name, label_key_faults(name))
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        names.add(name)


def variables_kind(
    declared: list[Obj], kinds: dict[str, CelType], *, mutates: bool = False
) -> tuple[Any, dict[int, str]]:
    """The kind of `variables`, and by place why one does not compile."""
    from shoal.embedded.apiserver.admission_expressions import Variables

    made = Variables(declared, kinds, mutates=mutates)
    return made.kind, dict(made.faults)

"""Lets a command take its options as one dataclass instead of one parameter for each option.

Typer reads the options of a command from the signature of a function. `with_options` builds that signature: a parameter
whose type is a dataclass is replaced by one parameter for each field, with the field's `Annotated` type and default.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, get_type_hints

_EMPTY = inspect.Parameter.empty


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its dataclass parameters as parameters of their own."""
    hints = get_type_hints(command, include_extras=True)
    names = list(inspect.signature(command).parameters)
    groups = {name: hints[name] for name in names if dataclasses.is_dataclass(hints[name])}
    expanded = [each for name in names for each in _parameters(command, name, hints[name])]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        command(**given)

    run.__signature__ = inspect.Signature(expanded)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in expanded}
    return run


def _parameters(command: Callable[..., None], name: str, hint: Any) -> Iterator[inspect.Parameter]:
    if not dataclasses.is_dataclass(hint):
        default = inspect.signature(command).parameters[name].default
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        return
    hints = get_type_hints(hint, include_extras=True)
    for field in dataclasses.fields(hint):
        default = _EMPTY if field.default is dataclasses.MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )

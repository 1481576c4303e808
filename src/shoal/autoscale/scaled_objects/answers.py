"""Finds the value of a trigger in the answer of a server: of Prometheus, or of any API by a path.

A value that is no finite number is an error, never 0: a ScaledObject must not scale in because of it.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from shoal.api.yaml_text import read_yaml
from shoal.prometheus.samples import samples_of
from shoal.units.errors import UserError
from shoal.units.quantity import NANO, Quantity


class AnswerError(ValueError):
    """The answer has no value."""


def prometheus_value(body: bytes, *, ignores_null: bool) -> float:
    """The one value of an instant query. Several series are an error."""
    try:
        answer = msgspec.json.decode(body, type=dict)
        data = answer["data"]
        result = data["result"]
        if data.get("resultType") == "scalar":
            return _number(result[1])
        if not result:
            return _null(ignores_null)
        if len(result) > 1:
            raise AnswerError("prometheus query returned multiple elements")
        value = result[0].get("value") or []
        return _number(value[1]) if len(value) > 1 else _null(ignores_null)
    except (msgspec.DecodeError, RecursionError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise AnswerError(f"the answer of prometheus cannot be read: {type(error).__name__}: {error}") from None


def _null(ignores_null: bool) -> float:
    if ignores_null:
        return 0.0
    raise AnswerError("prometheus metrics 'prometheus' target may be lost, the result is empty")


def api_value(body: bytes, form: str, location: str) -> float:
    if form == "prometheus":
        return _of_series(body, location)
    try:
        text = body.decode()
        found = msgspec.json.decode(body) if form == "json" else next((value for _, value in read_yaml(text)), None)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, UserError) as error:
        raise AnswerError(f"the answer is not {form}: {error}") from None
    for step in _steps(location):
        found = _below(found, step, location)
    return _number(found, location)


def _steps(location: str) -> list[str]:
    """The keys of a path; a backslash takes the point behind it into the key."""
    steps, letters = [""], iter(location)
    for letter in letters:
        if letter == ".":
            steps.append("")
        else:
            steps[-1] += next(letters, "") if letter == "\\" else letter
    return [step for step in steps if step]


def _below(found: Any, step: str, location: str) -> Any:
    if isinstance(found, dict) and step in found:
        return found[step]
    if isinstance(found, list):
        if step == "#":
            return len(found)
        if step.isdecimal() and len(step) < 9 and int(step) < len(found):
            return found[int(step)]
    raise AnswerError(f'valueLocation "{location}" is not in the answer: there is no "{step}"')


def _of_series(body: bytes, location: str) -> float:
    wanted = next(samples_of(f"{location.strip()} 1"), None)
    if wanted is None:
        raise AnswerError(f'valueLocation "{location}" is not a metric with labels')
    for one in samples_of(body.decode(errors="replace")):
        if one.name == wanted.name and wanted.labels.items() <= one.labels.items():
            return _number(one.value, location)
    raise AnswerError(f'valueLocation "{location}" is not in the answer')


def _number(value: Any, location: str = "") -> float:
    found = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        found = _float(value)
    elif isinstance(value, str):
        try:
            found = float(value)
        except ValueError:
            found = _quantity(value)
    if not math.isfinite(found):
        where = f'valueLocation "{location}"' if location else "the value"
        raise AnswerError(f"{where} must point to a numeric value or a quantity, got {value!r}"[:200])
    return found


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _quantity(text: str) -> float:
    try:
        return Quantity.parse(text).nano / NANO
    except UserError:
        return math.nan

"""Reads the values of an installation: files in their order, then `--set` options, over the documented defaults.

An unknown name is a warning with the most similar name, because helm ignores it in silence; a value of the wrong type
is an error, because its effect would be another than intended.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from shoal.api.yaml_text import read_yaml
from shoal.install.values.known import BY_PATH, CHOICES, GROUPS, NUMBER_OR_TEXT, copied, defaults, flat, put
from shoal.install.values.option import Option
from shoal.install.values.set_text import apply_set
from shoal.install.values.translations import advice, translated
from shoal.units.errors import UserError, Where, excerpt

_ALIKE = 0.6
_MOST_TEXT = 200


class ValuesText(NamedTuple):
    """A file of values, or one option of the command line."""

    option: Literal["--values", "--set", "--set-string"]
    text: str
    file: str = ""


class ChartValues(msgspec.Struct, frozen=True):
    given: dict[str, Any] = {}
    """What the user gave, with the names of the chart: kept for the next upgrade."""
    effective: dict[str, Any] = {}
    """Over the defaults."""
    warnings: tuple[str, ...] = ()

    def get(self, path: str) -> Any:
        found: Any = self.effective
        for name in path.split("."):
            found = found[name]
        return found


def read_values(texts: Sequence[ValuesText], kept: dict[str, Any] | None = None) -> ChartValues:
    """`kept`: the values of the present installation, which the texts change. Raises UserError."""
    given: dict[str, Any] = copied(kept or {})
    warnings: list[str] = []
    for where, layer in _layers(texts):
        named, told = translated(layer, where)
        warnings += told
        checked: dict[str, Any] = {}
        for path, value in flat(named):
            option = _option(path, value, where, warnings)
            if option is not None:
                put(checked, path, None if value is None else _typed(option, value, where, warnings))
        given = merged(given, checked)
    effective = _without_nulls(merged(defaults(), given))
    return ChartValues(given, effective, tuple(dict.fromkeys((*warnings, *advice(effective)))))


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Objects are merged; lists and other values replace what is below. A null replaces it too."""
    found = dict(below)
    for name, value in above.items():
        present = found.get(name)
        found[name] = merged(present, value) if isinstance(present, dict) and isinstance(value, dict) else value
    return found


def _without_nulls(effective: dict[str, Any]) -> dict[str, Any]:
    """A null removes a default: what is left is the empty value of the option."""
    for path, value in list(flat(effective)):
        if value is None:
            option = BY_PATH[path]
            put(effective, path, False if option.default is True else type(option.default)())
    return effective


def _layers(texts: Sequence[ValuesText]) -> Iterator[tuple[Where, dict[str, Any]]]:
    """Files before options, as with helm; the options of one sort are one layer."""
    for one in texts:
        if one.option == "--values":
            yield Where(one.file), _document(one.text, one.file)
    for option in ("--set", "--set-string"):
        layer: dict[str, Any] = {}
        for one in texts:
            if one.option == option:
                apply_set(layer, one.text, option, is_text=option == "--set-string")
        if layer:
            yield Where(path=option), layer


def _document(text: str, file: str) -> dict[str, Any]:
    documents = [value for _, value in read_yaml(text, file)]
    if len(documents) > 1:
        raise UserError("has several documents", where=Where(file), fix="values are one document")
    found = documents[0] if documents else {}
    if not isinstance(found, dict):
        raise UserError("is not an object", where=Where(file), fix="write name: value")
    return found


def _option(path: str, value: Any, where: Where, warnings: list[str]) -> Option | None:
    option = BY_PATH.get(path)
    if option is not None:
        return option
    if path in GROUPS:
        if value not in ({}, None):
            fix = f"its options are {_few(_below(path))}"
            raise UserError(f"{path} is a group of options and no value", where=where, fix=fix)
        return None
    near = _near(path)
    shown = path if len(path) < _MOST_TEXT else f"{path[:_MOST_TEXT]}..."
    meant = f"; did you mean {near}?" if near else ""
    warnings.append(f"{where}: {excerpt(shown)} is not an option and is ignored{meant}")
    return None


def _below(group: str) -> list[str]:
    return [path for path in BY_PATH if path.startswith(f"{group}.")]


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")


def _near(path: str) -> str:
    if len(path) > _MOST_TEXT:
        return ""
    parent, _, last = path.rpartition(".")
    beside = {one.rpartition(".")[2]: one for one in (*BY_PATH, *GROUPS) if one.rpartition(".")[0] == parent}
    for name in difflib.get_close_matches(last, list(beside), 1, _ALIKE):
        return beside[name]
    return next(iter(difflib.get_close_matches(path, list(BY_PATH), 1, _ALIKE)), "")


def _typed(option: Option, value: Any, where: Where, warnings: list[str]) -> Any:
    at, wanted = where.below(option.path) if not where.file else Where(where.file, path=option.path), option.default
    if isinstance(wanted, bool):
        return _flag(value, at, warnings)
    if isinstance(wanted, str):
        return _word(option, value, at, warnings)
    if isinstance(wanted, int):
        return _count(value, at)
    if not isinstance(value, type(wanted)):
        raise UserError("must be a list" if isinstance(wanted, list) else "must be an object", where=at)
    return value


def _flag(value: Any, where: Where, warnings: list[str]) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        warnings.append(f"{where}: {excerpt(value)} is a text; it is read as {value.lower()}")
        return value.lower() == "true"
    raise UserError("must be true or false", where=where)


def _count(value: Any, where: Where) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UserError("must be a whole number, 0 or more", where=where)
    return value


def _word(option: Option, value: Any, where: Where, warnings: list[str]) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UserError("must be a text", where=where)
    if isinstance(value, int) and option.path in NUMBER_OR_TEXT:
        return value
    if isinstance(value, float):
        warnings.append(f"{where}: {value} is a number; if the text was longer, write it in quotes")
    text = str(value)
    choices = CHOICES.get(option.path, ())
    if choices and text not in (*choices, option.default):
        near = difflib.get_close_matches(text, choices, 1)
        fix = f"did you mean {near[0]}?" if near else f"choose among {', '.join(choices)}"
        raise UserError(f"unsupported value {excerpt(text)}", where=where, fix=fix)
    return text

"""Parses `--set` and `--set-string` of helm: `driver.enabled=false,daemonsets.tolerations[0].key=gpu,names={a,b}`.

The grammar is helm's: pairs with commas between; dots and indexes in the key; a backslash before a comma, dot, bracket
or brace takes the letter as it is; `{a,b}` is a list; `null` removes the key. `--set` reads whole numbers, `true`,
`false` and `null`, everything else is text; with `--set-string` everything is text.

Guarantees: the time is linear in the length of the text, and what an index makes is bounded: `a[60000][60000]=1` is
refused. Each error names the pair that it is about.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from shoal.units.errors import UserError, Where, excerpt

_MOST_FILLED = 1_000
"""Elements before the given indexes of one option."""
_MOST_DEEP = 30
_MOST_DIGITS = 18
Step = str | int


def apply_set(values: dict[str, Any], text: str, option: str = "--set", *, is_text: bool = False) -> None:
    """Change `values` as the pairs of the text say. Raises UserError."""
    reader = _Reader(text, Where(path=option))
    while not reader.is_done:
        path = reader.path()
        value = reader.value(is_text=is_text)
        _put(values, path, value, reader)


class _Reader:
    def __init__(self, text: str, where: Where) -> None:
        self.text = text
        self.filled = 0
        self._where = where
        self._at = 0
        self._from = 0

    @property
    def is_done(self) -> bool:
        return self._at >= len(self.text)

    def error(self, what: str, fix: str = "") -> UserError:
        return UserError(f"{excerpt(self.text[self._from :])}: {what}", where=self._where, fix=fix)

    def path(self) -> list[Step]:
        """The key of a pair, up to its equals sign."""
        self._from = self._at
        path: list[Step] = []
        while True:
            name, end = self._until(".=[,")
            if end == "," or not end:
                raise self.error(f"key {excerpt(name)} has no value", "write name=value")
            if name or not (path and isinstance(path[-1], int)):
                if not name:
                    raise self.error("a name is empty", r"write a dot that belongs to a name as \.")
                path.append(name)
            while end == "[":
                path.append(self._index())
                end = self._next("=.[")
            if len(path) > _MOST_DEEP:
                raise self.error(f"more than {_MOST_DEEP} names")
            if end == "=":
                return path

    def value(self, *, is_text: bool) -> Any:
        if self.text[self._at : self._at + 1] == "{":
            self._at += 1
            return self._list(is_text=is_text)
        word, _ = self._until(",")
        return word if is_text else _typed(word)

    def _list(self, *, is_text: bool) -> list[Any]:
        found: list[Any] = []
        while True:
            word, end = self._until(",}")
            if not end:
                raise self.error("the list does not end", "write } behind its last element")
            if word or found or end == ",":
                found.append(word if is_text else _typed(word))
            if end == "}":
                if not self.is_done and self.text[self._at] != ",":
                    raise self.error("text follows the list", "write a comma between pairs")
                self._at += 1
                return found

    def _until(self, ends: str) -> tuple[str, str]:
        """The text up to one of these letters, and the letter; empty at the end of the text."""
        letters: list[str] = []
        while self._at < len(self.text):
            letter = self.text[self._at]
            self._at += 1
            if letter == "\\" and self._at < len(self.text):
                letter = self.text[self._at]
                self._at += 1
            elif letter in ends:
                return "".join(letters), letter
            letters.append(letter)
        return "".join(letters), ""

    def _index(self) -> int:
        digits, end = self._until("]")
        if not end or not (digits.isascii() and digits.isdigit() and len(digits) < _MOST_DIGITS):
            raise self.error(f"{excerpt(digits)} is not an index", "write a number from 0, as in tolerations[0].key")
        return int(digits)

    def _next(self, letters: str) -> str:
        letter = self.text[self._at : self._at + 1]
        self._at += 1
        if not letter or letter not in letters:
            raise self.error("the key ends without a value", "write name=value")
        return letter


def _typed(word: str) -> Any:
    lower = word.lower()
    if lower in ("true", "false"):
        return lower == "true"
    if lower == "null":
        return None
    digits = word.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS and (digits == "0" or digits[0] != "0"):
        return int(word)
    return word


def _put(values: dict[str, Any], path: list[Step], value: Any, reader: _Reader) -> None:
    place: Any = values
    for step, after in pairwise(path):
        empty: Any = [] if isinstance(after, int) else {}
        found = _child(place, step)
        if found is None:
            found = empty
            _store(place, step, found, reader)
        elif not isinstance(found, type(empty)):
            raise reader.error(f"{excerpt(str(step))} has a value already that has no parts")
        place = found
    if value is None and isinstance(path[-1], str):
        # Kept as null: it also removes the default.
        place[path[-1]] = None
        return
    _store(place, path[-1], value, reader)


def _child(place: Any, step: Step) -> Any:
    if isinstance(step, int):
        return place[step] if step < len(place) else None
    return place.get(step)


def _store(place: Any, step: Step, value: Any, reader: _Reader) -> None:
    if isinstance(step, str):
        place[step] = value
        return
    missing = step + 1 - len(place)
    if missing > 0:
        reader.filled += missing
        if reader.filled > _MOST_FILLED:
            raise reader.error(f"index {step} is too large", f"lists have at most {_MOST_FILLED} elements here")
        place.extend([None] * missing)
    place[step] = value

"""Describes errors in the text of a label selector, with Kubernetes' messages.

`shoal.api.selector_text` reads selectors for all of Shoal and says what is wrong in Shoal's words; clients of the API
compare Kubernetes'. So a text that was refused is read once more here, to find the reason.
"""

from __future__ import annotations

import re

from shoal.api.requirement import as_int64
from shoal.embedded.apiserver.kinds.spellings import label_key_faults, label_value_faults

_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+")
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


class _FaultError(Exception):
    """Raised where the reading ends."""


def label_selector_fault(text: str) -> str:
    """Why the selector cannot be read; empty if it can."""
    try:
        _SelectorReader(text).read()
    except _FaultError as fault:
        return str(fault)
    return ""


class _SelectorReader:
    def __init__(self, text: str) -> None:
        self._tokens = [*_TOKEN.findall(text), ""]

    def read(self) -> None:
        if not self._is_word("!"):
            raise _FaultError(f"found '{self._tokens[0]}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                self._requirement()
            except _FaultError as fault:
                raise _FaultError(f"unable to parse requirement: {fault}") from None
            found = self._take()
            if not found:
                return
            if found != ",":
                raise _FaultError(f"found '{found}', expected: ',' or 'end of string'")
            if not self._is_word("!"):
                raise _FaultError(f"found '{self._tokens[0]}', expected: identifier after ','")

    def _requirement(self) -> None:
        is_absent = self._tokens[0] == "!"
        if is_absent:
            self._take()
        key = self._word()
        if faults := label_key_faults(key):
            raise _FaultError(f'<nil>: Invalid value: "{key}": {"; ".join(faults)}')
        if is_absent or self._tokens[0] in ("", ","):
            return
        operator = self._take()
        if operator in ("in", "notin"):
            values = self._values()
        elif operator in ("=", "==", "!=", "<", ">"):
            values = ["" if self._tokens[0] in ("", ",") else self._word()]
        else:
            raise _FaultError(f"found '{operator}', expected: {_OPERATORS}")
        _check(key, operator, values)

    def _values(self) -> list[str]:
        opened = self._take()
        if opened != "(":
            raise _FaultError(f"found '{opened}' expected: '('")
        if not self._is_word(",", ")"):
            raise _FaultError(f"found '{self._tokens[0]}', expected: ',', ')' or identifier")
        values: list[str] = []
        while (found := self._take()) != ")":
            if found == ",":
                continue
            if found in _SYMBOLS or not found:
                raise _FaultError(f"found '{found}', expected: ',', or identifier")
            values.append(found)
            if self._tokens[0] not in (",", ")"):
                raise _FaultError(f"found '{self._tokens[0]}', expected: ',' or ')'")
        return values

    def _is_word(self, *others: str) -> bool:
        found = self._tokens[0]
        return found in others or (bool(found) and found not in _SYMBOLS)

    def _word(self) -> str:
        found = self._take()
        if not found or found in _SYMBOLS:
            raise _FaultError(f"found '{found}', expected: identifier")
        return found

    def _take(self) -> str:
        """The end is never taken away."""
        return self._tokens.pop(0) if len(self._tokens) > 1 else ""


def _check(key: str, operator: str, values: list[str]) -> None:
    for place, value in enumerate(sorted(values)):
        if operator in ("<", ">") and as_int64(value) is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _FaultError(f'values[{place}]: Invalid value: "{value}": {why}')
        if faults := label_value_faults(value):
            raise _FaultError(f'values[{place}][{key}]: Invalid value: "{value}": {"; ".join(faults)}')

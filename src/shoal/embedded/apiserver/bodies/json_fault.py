"""Describes a JSON syntax error with the message of Go's scanner.

Only texts that a fast reader has refused come here, so this one may take its time; it keeps its own stack, for depth
may be what is wrong with the text.
"""

from __future__ import annotations

import re

MAX_DEPTH = 200
"""Of objects and lists within each other. Code that walks objects recurses, and no kind comes near this."""
TOO_DEEP = "exceeded max depth"
ENDED = "unexpected end of JSON input"

_GO_DEPTH = 10_000
_NO_SPACE = re.compile(rb"[^ \t\r\n]")
_NO_DIGIT = re.compile(rb"[^0-9]")
_NOT_PLAIN = re.compile(rb'["\\\x00-\x1f]')
_CLOSING = {"{": "}", "[": "]"}


class _ScanError(Exception):
    pass


class _Scanner:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0

    def run(self) -> None:
        stack: list[str] = []
        while True:
            opened = self._value()
            if opened:
                stack.append(opened)
                if len(stack) > _GO_DEPTH:
                    raise _ScanError(TOO_DEEP)
                if self._opens_empty(opened):
                    stack.pop()
                else:
                    continue
            while stack and self._closes(stack[-1]):
                stack.pop()
            if not stack:
                break
        self._space()
        if self._at < len(self._text):
            raise self._strange("after top-level value")

    def _space(self) -> None:
        self._skip_to(_NO_SPACE)

    def _skip_to(self, form: re.Pattern[bytes]) -> None:
        found = form.search(self._text, self._at)
        self._at = found.start() if found is not None else len(self._text)

    def _byte(self) -> str:
        """The byte here, which must be there."""
        if self._at >= len(self._text):
            raise _ScanError(ENDED)
        return chr(self._text[self._at])

    def _strange(self, where: str) -> _ScanError:
        return _ScanError(f"invalid character {_quoted(self._byte())} {where}")

    def _value(self) -> str:
        """Past a whole scalar, or past an opening bracket, which is answered."""
        self._space()
        byte = self._byte()
        if byte in _CLOSING:
            self._at += 1
            return byte
        if byte == '"':
            self._string()
        elif byte == "-" or byte.isdigit():
            self._number()
        elif byte in "tfn":
            self._literal({"t": "true", "f": "false", "n": "null"}[byte])
        else:
            raise self._strange("looking for beginning of value")
        return ""

    def _opens_empty(self, opened: str) -> bool:
        self._space()
        if self._byte() == _CLOSING[opened]:
            self._at += 1
            return True
        if opened == "{":
            self._key()
        return False

    def _closes(self, opened: str) -> bool:
        """After a value: past the bracket that closes it, or past the comma and the next key."""
        self._space()
        byte = self._byte()
        if byte == _CLOSING[opened]:
            self._at += 1
            return True
        if byte != ",":
            raise self._strange("after object key:value pair" if opened == "{" else "after array element")
        self._at += 1
        if opened == "{":
            self._space()
            self._key()
        return False

    def _key(self) -> None:
        if self._byte() != '"':
            raise self._strange("looking for beginning of object key string")
        self._string()
        self._space()
        if self._byte() != ":":
            raise self._strange("after object key")
        self._at += 1

    def _string(self) -> None:
        self._at += 1
        while True:
            self._skip_to(_NOT_PLAIN)
            byte = self._byte()
            if byte == "\\":
                self._escape()
                continue
            if byte != '"':
                raise self._strange("in string literal")
            self._at += 1
            return

    def _escape(self) -> None:
        self._at += 1
        byte = self._byte()
        if byte not in 'bfnrt\\/"u':
            raise self._strange("in string escape code")
        self._at += 1
        for _ in range(4 if byte == "u" else 0):
            if self._byte() not in "0123456789abcdefABCDEF":
                raise self._strange("in \\u hexadecimal character escape")
            self._at += 1

    def _number(self) -> None:
        if self._byte() == "-":
            self._at += 1
        if self._byte() == "0":
            self._at += 1
        else:
            self._digits("in numeric literal")
        if self._text[self._at : self._at + 1] == b".":
            self._at += 1
            self._digits("after decimal point in numeric literal")
        if self._text[self._at : self._at + 1] in (b"e", b"E"):
            self._at += 1
            if self._byte() in "+-":
                self._at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, where: str) -> None:
        start = self._at
        self._skip_to(_NO_DIGIT)
        if self._at == start:
            raise self._strange(where)

    def _literal(self, word: str) -> None:
        for expected in word:
            if self._byte() != expected:
                raise self._strange(f"in literal {word} (expecting {_quoted(expected)})")
            self._at += 1


def _quoted(byte: str) -> str:
    if byte == "'":
        return "'\\''"
    if byte.isprintable():
        return f"'{byte}'"
    return {"\n": "'\\n'", "\r": "'\\r'", "\t": "'\\t'"}.get(
        byte, f"'\\u{ord(byte):04x}'" if byte > "\x7f" else f"'\\x{ord(byte):02x}'"
    )


def json_fault(text: bytes) -> str:
    """Empty for what Go would read."""
    try:
        _Scanner(text).run()
    except _ScanError as error:
        return str(error)
    return ""

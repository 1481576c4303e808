"""Templates of `-o jsonpath=`: text with paths in braces, as in `{range .items[*]}{.name}{"\\n"}{end}`.

Guarantees: the results of one path are separated by a blank; text is printed as it is, anything else as JSON; a path
that leads nowhere prints nothing. As with kubectl, the braces and the first dot may be left out: `items[*].name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from shoal.api.jsonpath import PathError, find, steps

_PIECE = re.compile(r"\{((?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[^{}'\"])*)\}|([^{}]+)|(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_RANGE, _END = "range", "end"


class _Text(msgspec.Struct, frozen=True):
    text: str


class _Path(msgspec.Struct, frozen=True):
    path: str


class _Range(msgspec.Struct, frozen=True):
    path: str
    inner: list[_Text | _Path | _Range]


Part = _Text | _Path | _Range


class Template:
    """A template that was read; raises PathError for one that cannot be read."""

    def __init__(self, text: str) -> None:
        relaxed = text if "{" in text or not text else "{" + path_of(text) + "}"
        self._parts = _parts(relaxed)

    def render(self, value: Any) -> str:
        """`value`: of JSON types."""
        return "".join(_rendered(self._parts, value, value))

    def paths(self) -> list[str]:
        """All of its paths from the top; those of a range begin with that of the range."""
        return list(_paths(self._parts, ""))


def path_of(text: str) -> str:
    """A path that may lack its braces and its first dot. Raises PathError for one that cannot be read."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    path = inner if inner.startswith((".", "[", "$", "@")) else f".{inner}"
    steps(path)
    return path


def text_of(value: Any) -> str:
    """As kubectl prints a value: whole numbers without a fraction, structures as JSON."""
    if isinstance(value, str):
        return value
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else msgspec.json.encode(value).decode()


def _parts(text: str) -> list[Part]:
    stack: list[tuple[str, list[Part]]] = [("", [])]
    for piece in _PIECE.finditer(text):
        inside, plain, stray = piece.groups()
        if stray is not None:
            raise PathError(f"unclosed or unexpected {stray!r}")
        if plain is not None:
            stack[-1][1].append(_Text(plain))
            continue
        inside = inside.strip()
        word, _, rest = inside.partition(" ")
        if word == _RANGE:
            stack.append((path_of(rest), []))
        elif inside == _END:
            if len(stack) == 1:
                raise PathError("{end} without {range}")
            path, inner = stack.pop()
            stack[-1][1].append(_Range(path, inner))
        elif inside[:1] in ("'", '"'):
            stack[-1][1].append(_Text(re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), inside[1:-1])))
        else:
            stack[-1][1].append(_Path(path_of(inside)))
    if len(stack) > 1:
        raise PathError("{range} without {end}")
    return stack[0][1]


def _paths(parts: Sequence[Part], above: str) -> Iterator[str]:
    for part in parts:
        if isinstance(part, _Text):
            continue
        path = part.path if part.path.startswith("$") else above + part.path.removeprefix("@")
        yield path
        if isinstance(part, _Range):
            yield from _paths(part.inner, path)


def _rendered(parts: Sequence[Part], value: Any, root: Any) -> Iterator[str]:
    for part in parts:
        if isinstance(part, _Text):
            yield part.text
            continue
        # `$` leads from the whole document, everything else from the present element of a range.
        found = find(part.path, root if part.path.startswith("$") else value)
        if isinstance(part, _Path):
            yield " ".join(map(text_of, found))
        else:
            for one in found:
                yield from _rendered(part.inner, one, root)

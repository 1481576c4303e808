"""Failures typed by whose turn it is, so that a caller knows what to do without reading the text.

A refusal ("this pod fits nowhere") is a value and never passes through here. An exception means something broke, and
its class names who acts next: the user repairs the spec, the caller retries now or later, or the authors fix a bug. A
`UserError` is one line of text and says file, document, object and field, because that line is all a person sees before
the command exits.

Rejected: error codes on one class. A forgotten `if code == ...` passes silently; a missing `except` does not.
"""

from __future__ import annotations

import msgspec

_LONGEST_EXCERPT = 60


class Where(msgspec.Struct, frozen=True, gc=False):
    """A place in the user's input as far as it is known: a field of a document, or a cell of a table."""

    file: str = ""
    document: int | None = None
    obj: str = ""
    path: str = ""
    row: int | None = None

    def with_path(self, path: str) -> Where:
        return Where(self.file, self.document, self.obj, path, self.row)

    def below(self, step: str) -> Where:
        """The same place one step deeper: `spec` below `taints[0]` reads `spec.taints[0]`."""
        if not self.path or not step or step.startswith("["):
            return self.with_path(self.path + step)
        return self.with_path(f"{self.path}.{step}")

    def key(self, name: str) -> Where:
        """The same place at one key of a map, bracketed where a dot would mislead: `limits[nvidia.com/gpu]`."""
        return self.below(name if name.isidentifier() else f"[{name}]")

    def __str__(self) -> str:
        parts = [self.file] if self.file else []
        if self.document is not None:
            parts.append(f"document {self.document}" + (f" ({self.obj})" if self.obj else ""))
        elif self.obj:
            parts.append(self.obj)
        if self.row is not None:
            parts.append(f"row {self.row}")
        if self.path:
            parts.append(self.path)
        return ": ".join(parts)


class ShoalError(Exception):
    """The root of every failure Shoal raises on purpose."""

    def __init__(self, what: str, *, where: Where | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where or Where()

    def __str__(self) -> str:
        place = str(self.where)
        return one_line(f"{place}: {self.what}" if place else self.what)


class UserError(ShoalError):
    """The input is wrong: the user's turn. `fix` says what would make it right."""

    def __init__(self, what: str, *, where: Where | None = None, fix: str = "") -> None:
        super().__init__(what, where=where)
        self.fix = fix

    def __str__(self) -> str:
        text = super().__str__()
        return one_line(f"{text}; {self.fix}") if self.fix else text

    def at(self, where: Where) -> UserError:
        """The same complaint at a place known only further out, e.g. by the loop that opened the file."""
        return UserError(self.what, where=where, fix=self.fix)


class ConflictError(ShoalError):
    """Another client changed the same object first: read again and retry now."""


class TemporaryError(ShoalError):
    """The other side cannot answer at the moment: retry after `delay_s` seconds."""

    def __init__(self, what: str, delay_s: float, *, where: Where | None = None) -> None:
        super().__init__(what, where=where)
        self.args = (what, delay_s)
        self.delay_s = delay_s


class BugError(ShoalError):
    """A promise of the code itself is broken: stop, and tell the story that led here."""

    def __init__(self, what: str, *, where: Where | None = None, story: tuple[str, ...] = ()) -> None:
        super().__init__(what, where=where)
        self.story = story

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  {line}" for line in self.story)])


def one_line(text: str) -> str:
    """Input can hold newlines and control characters; a message quoting it is still one printable line."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split())


def excerpt(text: str) -> str:
    """What the user wrote, quoted, short enough for a one-line message."""
    shown = text if len(text) <= _LONGEST_EXCERPT else text[: _LONGEST_EXCERPT - 3] + "..."
    return '"' + one_line(shown) + '"'

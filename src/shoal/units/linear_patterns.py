"""Regular expressions that users write, in the syntax of Go's RE2, matched in time proportional to the text.

Kubernetes reads the patterns of definitions and of CEL with Go's `regexp`, so the same patterns are accepted, the
others are refused in the same words, and both find the same. google-re2 is RE2's own library; where Go's dialect is
narrower (`\\C`, names of groups), the pattern is refused here.

Patterns are bounded in length, and so is the memory that RE2 may use for each. Texts are matched as UTF-8; half a
surrogate pair counts as U+FFFD, as in Go.

Rejected: Python's `re`, which needs exponential time for some patterns and has another syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from shoal.units.bounded_cache import LONGEST as SHORT

LONGEST = 16_384
"""In letters. Far longer than any pattern in use."""
_MEMORY_BYTES = 8 << 20
_WORDS = (
    ("invalid perl operator", "invalid or unsupported Perl syntax"),
    ("bad repetition operator", "invalid nested repetition operator"),
    ("no argument for repetition operator", "missing argument to repetition operator"),
    ("invalid repetition size", "invalid repeat count"),
    ("missing )", "missing closing )"),
    ("missing ]", "missing closing ]"),
    ("invalid named capture group", "invalid named capture"),
    ("trailing \\", "trailing backslash at end of expression"),
    ("pattern too large", "expression too large"),
)


class PatternError(ValueError):
    """A pattern that Go would refuse; the message is Go's."""


class LinearPattern:
    """One pattern, compiled."""

    __slots__ = ("_compiled", "_known")

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._known = lru_cache(maxsize=64)(self._occurs)

    def occurs(self, text: str) -> bool:
        """Whether it matches anywhere in the text."""
        return self._known(text) if len(text) <= SHORT else self._occurs(text)

    def is_all(self, text: str) -> bool:
        """Whether it matches the text from its beginning to its end."""
        return self._compiled.fullmatch(_bytes(text)) is not None

    def find_all(self, text: str, most: int | None = None) -> Iterator[str]:
        """What it matches from left to right, without overlaps; an empty match right after another one is left out."""
        return islice(self._found(text), most)

    def _found(self, text: str) -> Iterator[str]:
        last_end = -1
        for one in self._compiled.finditer(_bytes(text).decode()):
            start, end = one.span()
            if start == end == last_end:
                continue
            last_end = end
            yield one.group()

    def _occurs(self, text: str) -> bool:
        return self._compiled.search(_bytes(text)) is not None


@lru_cache(maxsize=512)
def compile_linear(pattern: str) -> LinearPattern:
    """Raises PatternError for a pattern that Go would refuse."""
    if len(pattern) > LONGEST:
        raise PatternError("error parsing regexp: expression too large: ``")
    import re2  # commands that read no pattern do not load it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        compiled = re2.compile(pattern, options)
    except UnicodeEncodeError as error:
        raise PatternError("error parsing regexp: invalid UTF-8") from error
    except re2.error as error:
        raise PatternError(f"error parsing regexp: {_in_words_of_go(pattern, error.args[0])}") from None
    _check_go(pattern, compiled.groupindex)
    return LinearPattern(compiled)


def _check_go(pattern: str, names: Iterable[str]) -> None:
    """What RE2 takes and Go does not."""
    for name in names:
        if not name.isascii():
            raise PatternError(f"error parsing regexp: invalid named capture: `(?P<{name}>`")
    place = pattern.find("\\")
    while place >= 0:
        escaped = pattern[place + 1 : place + 2]
        if escaped == "C":
            raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
        end = pattern.find("\\E", place) if escaped == "Q" else place
        place = pattern.find("\\", end + 2) if end >= 0 else -1


def _in_words_of_go(pattern: str, said: bytes) -> str:
    words, _, piece = said.decode(errors="replace").partition(": ")
    if piece in ("(?<=", "(?<!"):
        name, end, _ = pattern[pattern.index(piece) :].partition(">")
        return f"invalid named capture: `{name}{end}`"
    return f"{next((go for begin, go in _WORDS if words.startswith(begin)), words)}: `{piece}`"


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()

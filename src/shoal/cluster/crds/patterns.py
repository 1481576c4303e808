"""Regular expressions of schemas, which are written for Go's RE2, matched with Python's `re`.

The two agree on nearly everything that definitions use; the differences that matter are translated (`$` at the very end
of the text, `\\z`, POSIX classes, flags in the middle). Backreferences and look-around do not exist there and are
refused.

RE2 needs time in proportion to the text; `re` may try for ever what a pattern like `(a+)+$` could mean. Patterns that
look so are given to the RE2 inside the CEL library, which takes thirty microseconds where `re` mostly takes one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_FOREIGN = re.compile(r"\(\?(?:[=!]|<[=!]|>|P=)|\\[1-9]|[*+?}]\+")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_REPETITION = re.compile(r"[*+]|\{\d*,\}")
_SHORT, _LONG = 12, 200
"""Letters of a text in which little can be tried, and of one in which two repetitions are enough to try too much."""


class BadPatternError(ValueError):
    """A pattern that RE2 would not take."""


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text. One that means nothing matches everything: it was refused before."""
    try:
        return occurs(pattern, text)
    except BadPatternError:
        return True


def occurs(pattern: str, text: str) -> bool:
    """The same; raises for a pattern that means nothing."""
    found = compiled(pattern)
    if len(text) > _SHORT and _is_risky(pattern, is_long=len(text) > _LONG):
        # Whatever it says of a pattern that it cannot read is no `True`, and no other can be here.
        return _linear().eval(data={"text": text, "pattern": pattern}).value() is True
    return found.search(text) is not None


@lru_cache(maxsize=4096)
def _is_risky(pattern: str, *, is_long: bool) -> bool:
    return bool(_REPEATED_GROUP.search(pattern)) or (is_long and len(_REPETITION.findall(pattern)) > 1)


@lru_cache(maxsize=1)
def _linear() -> Any:
    from cel_expr_python import cel  # forty milliseconds that few pay

    environment = cel.NewEnv(variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING})
    return environment.compile("text.matches(pattern)")


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    if _FOREIGN.search(pattern.replace("\\\\", "")):
        raise BadPatternError("invalid or unsupported Perl syntax")
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPatternError(str(error)) from error


def _translated(pattern: str) -> str:
    flags = re.match(r"\(\?([imsU]+)\)", pattern)
    is_multiline = bool(flags and "m" in flags[1])
    out: list[str] = []
    in_class = False
    index = 0
    while index < len(pattern):
        one = pattern[index]
        if one == "\\" and index + 1 < len(pattern):
            escaped = pattern[index : index + 2]
            out.append({"\\z": "\\Z", "\\Q": "", "\\E": ""}.get(escaped, escaped))
            index += 2
            continue
        if in_class:
            posix = re.match(r"\[:(\^?)(\w+):\]", pattern[index:])
            if posix and posix[2] in _POSIX and not posix[1]:
                out.append(_POSIX[posix[2]])
                index += posix.end()
                continue
            out.append("\\[" if one == "[" else one)
            in_class = one != "]"
        elif one == "[":
            in_class = True
            first = re.match(r"\[\^?\]?", pattern[index:])
            opening = first[0] if first else one
            out.append(opening.replace("]", "\\]"))
            index += len(opening)
            continue
        else:
            out.append("\\Z" if one == "$" and not is_multiline else one)
        index += 1
    return "".join(out)

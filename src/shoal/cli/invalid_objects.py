"""Names objects that a command ignores because they contradict themselves or other objects.

Every answer names a few of them. `shoal why` explains what is wrong with a given one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote as quoted
from typing import TYPE_CHECKING

from shoal.cli.object_names import kind_called

if TYPE_CHECKING:
    from shoal.views.explanation import Explanation

_NOTE = re.compile(r"(?P<kind>\S+) (?P<key>\S+) is left out: (?P<why>.*)", re.DOTALL)
_MOST = 3


def note_of(obj: str, words: str) -> str:
    """`obj` as in `Pod default/x`."""
    return f"{obj} is left out: {words}"


def shortened(notes: Sequence[str]) -> list[str]:
    """The notes beside an answer about another object: the first few, and the number of the others."""
    objects = [note for note in notes if _NOTE.fullmatch(note)]
    others = [note for note in notes if not _NOTE.fullmatch(note)]
    more = len(objects) - _MOST
    if more > 0:
        others.append(f"{more:,} more objects are left out; shoal why KIND/NAME says what is wrong with one")
    return [*objects[:_MOST], *others]


def explanation_of(notes: Sequence[str], name: str, namespace: str, *, is_only: bool = False) -> Explanation | None:
    """Of the object that is meant, if it is one of them. `is_only`: objects of other namespaces are not meant."""
    word, slash, rest = name.partition("/")
    kind = kind_called(word) if slash else ""
    found = [match for note in notes if (match := _NOTE.fullmatch(note))]
    for wanted, text in ((kind, rest), ("", name)):
        keys = {text} if "/" in text else {f"{namespace}/{text}", text} if namespace else {text}
        for match in found:
            key = match["key"]
            is_named = key in keys or ("/" not in text and not is_only and key.rpartition("/")[2] == text)
            if is_named and (not wanted or kind_called(match["kind"]) == wanted):
                return _told(match["kind"].lower(), key, match["why"])
    return None


def _told(kind: str, key: str, why: str) -> Explanation:
    from shoal.views.explanation import Explanation

    explanation = Explanation(f"{kind} {key}", "is not valid: Shoal decides nothing about it until it is corrected")
    explanation.add("wrong", why)
    namespace, _, bare = key.rpartition("/")
    command = f"kubectl edit {kind} {quoted(bare)}{f' -n {quoted(namespace)}' if namespace else ''}"
    explanation.add("then", f"correct it with `{command}`; Shoal tries it again when it changes")
    return explanation

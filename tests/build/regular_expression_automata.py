"""Whether Python's `re` needs more than linear time for a pattern, decided on the pattern alone.

A backtracking matcher walks, for a text that does not match, every path of the pattern's automaton that reads the text.
There are more than linearly many paths if and only if two different states p and q in loops can read one and the same
text from p to p, from p to q and from q to q (polynomially many), or if a loop reads one text in two ways
(exponentially many; the first condition finds this too, where the ways differ in a state). A search starts at each
letter anew: that is one more state before the pattern, which reads everything in a loop.

The automaton is larger than the pattern, never smaller: anchors and look-around count as empty, back-references as the
group they repeat, and a repetition of more than a few times as one without end. Behind `$` nothing is read.
"""

from __future__ import annotations

import itertools
import re
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections import defaultdict
from functools import cache
from typing import Any

_MANY, _MANY_ALIKE = 4, 16
"""Repetitions that may be more often than that count as endless; the second where their number is given."""
_TEXTS = [*map(chr, range(128)), "\x85", "\xa0", "\xb5", "\xe9", "\u03bc", "\u0663", "\u2028", "\u65e5"]


class Automaton:
    """States are numbers; 0 is before the first letter. Each but 0 reads one letter of its set."""

    def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
        self.is_bytes = isinstance(pattern, bytes)
        text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
        tree = parser.parse(text, flags)
        self.flags = tree.state.flags
        self.reads: list[int] = [0]
        """One bit for each text of the alphabet."""
        self.next: dict[int, set[int]] = defaultdict(set)
        self.doubled: set[tuple[int, int]] = set()
        """Steps that are possible in two ways."""
        self.groups: dict[int, Any] = {}
        first, last, is_empty = self._sequence(tree)
        self.starts, self.accepts, self.may_be_empty = set(first), set(last), is_empty
        self._link({0}, first)

    def _link(self, sources: Any, targets: Any) -> None:
        for source, target in itertools.product(sources, targets):
            if target in self.next[source]:
                self.doubled.add((source, target))
            self.next[source].add(target)

    def _leaf(self, node: Any) -> tuple[list[int], list[int], bool]:
        one = parser.SubPattern(self._state(), [node])
        compiled = re._compiler.compile(one, self.flags)  # type: ignore[attr-defined]
        self.reads.append(sum(1 << place for place, text in enumerate(_TEXTS) if compiled.fullmatch(text)))
        state = len(self.reads) - 1
        return [state], [state], False

    def _state(self) -> Any:
        state = parser.State()
        state.flags = self.flags
        state.str = ""
        return state

    def _sequence(self, nodes: Any) -> tuple[list[int], list[int], bool]:
        first: list[int] = []
        last: list[int] = []
        is_empty = True
        for node in nodes:
            one_first, one_last, one_empty = self._node(node)
            self._link(last, one_first)
            first = first + one_first if is_empty else first
            last = last + one_last if one_empty else one_last
            is_empty = is_empty and one_empty
        return first, last, is_empty

    def _node(self, node: Any) -> tuple[list[int], list[int], bool]:
        code, value = node
        if code in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.CATEGORY):
            return self._leaf(node)
        if code is codes.AT and value in (codes.AT_END, codes.AT_END_STRING) and not self.flags & re.MULTILINE:
            # Behind the end nothing is read: a state that reads no letter.
            self.reads.append(0)
            return [len(self.reads) - 1], [len(self.reads) - 1], False
        if code is codes.AT:
            return [], [], True
        if code is codes.SUBPATTERN:
            self.groups[value[0]] = value[-1]
            return self._sequence(value[-1])
        if code is codes.ATOMIC_GROUP:
            return self._sequence(value)
        if code is codes.GROUPREF:
            return self._sequence(self.groups[value])
        if code is codes.BRANCH:
            made = [self._sequence(one) for one in value[1]]
            return (
                [state for first, _, _ in made for state in first],
                [state for _, last, _ in made for state in last],
                any(is_empty for _, _, is_empty in made),
            )
        if code in (codes.ASSERT, codes.ASSERT_NOT):
            inner = Automaton("")
            inner.flags, inner.groups = self.flags, self.groups
            inner._sequence(value[1])
            if any(state in inner.next[state] for state in list(inner.next)):
                raise NotImplementedError("a loop in a look-around")
            return [], [], True
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            return self._repeat(*value)
        raise NotImplementedError(str(code))

    def _repeat(self, least: int, most: int, inner: Any) -> tuple[list[int], list[int], bool]:
        is_endless = most is codes.MAXREPEAT or most > (_MANY_ALIKE if least == most else _MANY)
        copies: list[Any] = [inner] * (min(least, _MANY) if is_endless else most)
        first: list[int] = []
        last: list[int] = []
        is_empty = True
        for index, one in enumerate(copies):
            one_first, one_last, one_empty = self._sequence(one)
            one_empty = one_empty or index >= least
            self._link(last, one_first)
            first = first + one_first if is_empty else first
            last = last + one_last if one_empty else one_last
            is_empty = is_empty and one_empty
        if is_endless and least > 0:
            self._link(one_last, one_first)
        elif is_endless:
            first, last, _ = self._sequence(inner)
            self._link(last, first)
        return first, last, is_empty or least == 0


@cache
def fault(pattern: str | bytes, flags: int = 0, *, searches: bool = False) -> str:
    """Why matching may take more than linear time; empty where it does not."""
    made = Automaton(pattern, flags)
    if searches:
        made.reads[0] = (1 << len(_TEXTS)) - 1
        made.next[0].add(0)
    loops = _loops(made)
    twice = next(((a, b) for a, b in made.doubled if loops.get(a) is not None and loops.get(a) == loops.get(b)), None)
    if twice:
        return "a loop reads one text in two ways"
    after = {state: _reachable(made, state) for state in loops}
    for p, q in itertools.permutations(loops, 2):
        if q in after[p] and _is_pumped(made, p, q, loops, searches):
            return f"{_shown(made, p)} and {_shown(made, q)} may share a text in many ways"
    return ""


def _shown(made: Automaton, state: int) -> str:
    return repr(
        "".join(
            _TEXTS[place]
            for place in range(len(_TEXTS))
            if made.reads[state] >> place & 1 and _TEXTS[place].isprintable()
        )[:20]
    )


def _reachable(made: Automaton, start: int) -> set[int]:
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        for one in made.next[waiting.pop()]:
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return seen


def _loops(made: Automaton) -> dict[int, frozenset[int]]:
    """The states that are in a loop, each with all that are in the same ones."""
    reach = {state: _reachable(made, state) for state in range(len(made.reads))}
    return {
        state: frozenset(other for other in after if state in reach[other])
        for state, after in reach.items()
        if state in after
    }


def _is_pumped(made: Automaton, p: int, q: int, loops: dict[int, frozenset[int]], searches: bool) -> bool:
    """Whether one text leads from p to p, from p to q and from q to q. A search ends with its first match."""
    is_start = searches and p == 0
    home, away = loops[p], loops[q]
    begin = (p, p, q)
    seen = {begin}
    waiting = [begin]
    while waiting:
        one, other, third = waiting.pop()
        # p has to come back to p, q to q, and p to q.
        firsts = [a for a in made.next[one] if a in home]
        thirds = [c for c in made.next[third] if c in away]
        for a, b, c in itertools.product(firsts, made.next[other], thirds):
            if is_start and (a != 0 or b in made.accepts or c in made.accepts):
                continue
            step = (a, b, c)
            if step in seen or not made.reads[a] & made.reads[b] & made.reads[c]:
                continue
            if step == (p, q, q):
                return True
            seen.add(step)
            waiting.append(step)
    return False

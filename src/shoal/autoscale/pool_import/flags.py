"""Reads the flags of a command line: `--name value`, `--name=value`, and flags without a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from shoal.units.errors import UserError, excerpt
from shoal.units.numbers import whole_of

_EFFECTS: Final = {
    "NoSchedule": "NoSchedule",
    "NO_SCHEDULE": "NoSchedule",
    "PreferNoSchedule": "PreferNoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NoExecute": "NoExecute",
    "NO_EXECUTE": "NoExecute",
}


class Flags:
    def __init__(self, words: Sequence[str], switches: Collection[str] = ()) -> None:
        """`switches`: flags that take no value."""
        self.words: list[str] = []
        """What is no flag."""
        self._values: dict[str, list[str]] = {}
        self._used: set[str] = set()
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if not word.startswith("-"):
                self.words.append(word)
                continue
            name, equals, value = word.lstrip("-").partition("=")
            if not equals and name not in switches and at < len(words) and not words[at].startswith("--"):
                value = words[at]
                at += 1
            elif not equals:
                value = "true"
            self._values.setdefault(name, []).append(value)

    def text(self, *names: str) -> str:
        """The last value of the first of these flags that is given; empty without one."""
        self._used.update(names)
        return next((self._values[name][-1] for name in names if name in self._values), "")

    def all(self, *names: str) -> list[str]:
        self._used.update(names)
        return [value for name in names for value in self._values.get(name, ())]

    def is_on(self, *names: str) -> bool:
        return self.text(*names).lower() in ("true", "1", "yes")

    def number(self, *names: str) -> int | None:
        written = self.text(*names)
        if not written:
            return None
        found = whole_of(written)
        if found is None:
            raise UserError(f"--{names[0]} is {excerpt(written)}, which is no number of nodes")
        return found

    def unused(self) -> list[str]:
        return sorted(self._values.keys() - self._used)


def labels_of(text: str) -> dict[str, str]:
    """`a=b,c=d`."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def taints_of_text(text: str) -> list[Mapping[str, str]]:
    """`key=value:effect,key:effect`, with the effects of Kubernetes or of gcloud."""
    found: list[Mapping[str, str]] = []
    for part in filter(None, text.split(",")):
        left, _, effect = part.rpartition(":")
        if effect not in _EFFECTS or not left:
            raise UserError(f"{excerpt(part)} is not a taint", fix="write key=value:NoSchedule")
        key, _, value = left.partition("=")
        found.append({"key": key, "effect": _EFFECTS[effect], **({"value": value} if value else {})})
    return found


def checked_size(name: str, least: int | None, most: int | None) -> tuple[int, int | None]:
    if least is not None and most is not None and least > most:
        raise UserError(f"node group {name} has a minimum of {least} and a maximum of {most} nodes")
    return least or 0, most

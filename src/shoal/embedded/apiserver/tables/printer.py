"""Describes the table of a kind: column definitions, and a function from an object to its cells.

`heads` reads a short form, because a table of sixty kinds must be readable: `"Name"` is a text column,
`"Replicas:integer"` another type, `"+Node"` one that only `-o wide` shows (priority 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.embedded.apiserver.tables.ages import since

Obj = dict[str, Any]
Cells = Callable[[Obj, int], list[Any]]

DESCRIPTIONS = {
    "Name": "The name of the object, unique among its kind within a namespace.",
    "Age": "How long ago the object was created.",
    "Created At": "When the object was created.",
    "Ready": "How many parts of how many are ready.",
    "Status": "A summary of the object's state.",
    "Restarts": "How often the containers of the pod have been restarted, and when last.",
    "IP": "The address of the pod.",
    "Node": "The node the object belongs to.",
    "Nominated Node": "The node on which room is being made for the pod.",
    "Readiness Gates": "How many of the pod's readiness gates are passed.",
    "Containers": "The names of the containers of the template.",
    "Images": "The images of the containers of the template.",
    "Selector": "The labels by which the object finds its pods.",
    "Desired": "How many are wanted.",
    "Current": "How many there are.",
    "Up-to-date": "How many are of the newest template.",
    "Available": "How many are available.",
    "Completions": "How many pods have ended well, of how many.",
    "Duration": "How long the job has run.",
    "Last Seen": "When the event happened last.",
    "First Seen": "When the event happened first.",
    "Message": "What happened, for people.",
    "Reason": "What happened, for machines.",
}


class TableColumn(msgspec.Struct, frozen=True):
    """One column, written as the API has it."""

    name: str
    type: str
    format: str
    description: str
    priority: int


class Printer(msgspec.Struct, frozen=True):
    heads: tuple[TableColumn, ...]
    cells: Cells
    conditions: Callable[[Obj], list[Obj] | None] | None = None
    order: Callable[[Obj], Any] | None = None
    """The sort key of lists that are not shown by name."""


def heads(*short: str) -> tuple[TableColumn, ...]:
    return tuple(_head(one) for one in short)


def _head(short: str) -> TableColumn:
    name, _, kind = short.removeprefix("+").partition(":")
    return TableColumn(
        name,
        kind or "string",
        "name" if name == "Name" else "",
        DESCRIPTIONS.get(name, ""),
        1 if short.startswith("+") else 0,
    )


def age(obj: Obj, now_s: int) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now_s)


def name_and_age(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), age(obj, now_s)]


def name_and_creation(obj: Obj, _: int) -> list[Any]:
    return [name(obj), obj["metadata"].get("creationTimestamp") or "<unknown>"]


def name(obj: Obj) -> str:
    found: str = obj["metadata"].get("name", "")
    return found


def part(obj: Obj, key: str) -> Obj:
    """A member that is an object, empty where it is missing."""
    found: Obj = obj.get(key) or {}
    return found


def condition_status(conditions: list[Obj] | None, kind: str) -> str:
    for one in conditions or ():
        if one.get("type") == kind:
            found: str = one.get("status", "")
            return found
    return ""

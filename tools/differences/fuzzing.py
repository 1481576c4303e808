"""Mutations of valid objects, drawn by seed: what is wrong with them is what two validations have to agree on.

A mutation is a pure function of its seed and number. It takes one object of `objects.yaml`, changes one to three places
of it (removes, empties or repeats a value, gives it another type, an odd spelling, a number out of range, another word
of the same object, a field that the schema has and the object has not), and sends it as a creation, an update or a
patch. Fields come from the published schemas, so that every field of every kind is reached in the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from shoal.embedded.apiserver.schema.kubernetes import Shapes
from shoal.embedded.apiserver.schema.node import Schema
from tools.differences.sending import Request

Obj = dict[str, Any]
MOST_CHANGES = 3
_TOO_LONG = "a" * 64
_LONGER = "a" * 254
_MUCH_LONGER = "x" * 1025
_STRINGS = (
    "", "a", "A", "a.b", "a b", "a/b", "a_b", "-a", "a-", "é", "ü.example.com", "1", "-1", "a\nb", "a:b", "../a", "/",
    "*", "*.example.com", "example.com/a", "example.com/a/b", "kubernetes.io/a", "10.0.0.1", "::1", "10.0.0.0/8",
    "10.0.0.1/8", "300.0.0.1", "50%", "101%", "1Gi", "0", "-5", "1.5", "1e3", "100m", "0.1m", "metadata.name", "$(A)",
    "1h", "2026-01-01T00:00:00Z", _TOO_LONG, _LONGER, _MUCH_LONGER,
)  # fmt: skip
_WORDS = (
    "Always", "Never", "OnFailure", "IfNotPresent", "TCP", "UDP", "SCTP", "HTTP", "HTTPS", "ClusterIP", "NodePort",
    "LoadBalancer", "ExternalName", "None", "Local", "Cluster", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Equal",
    "NoSchedule", "PreferNoSchedule", "NoExecute", "Recreate", "RollingUpdate", "OnDelete", "Indexed", "NonIndexed",
    "Delete", "Retain", "Block", "Filesystem", "ReadWriteOnce", "ReadWriteOncePod", "Memory", "True", "False",
    "Unknown", "Ignore", "Fail", "v1", "ConfigMap", "Pod", "Default", "IPv4", "IPv6", "default", "cpu", "memory",
    "nvidia.com/gpu", "pods", "All", "ExactCount", "Prefix", "Exact", "Utilization", "Value", "AverageValue", "Job",
    "User", "Group", "ServiceAccount", "Role", "ClusterRole", "rbac.authorization.k8s.io", "Immediate", "Exempt",
    "Limited", "Queue", "Reject", "Guaranteed", "Localhost", "Unconfined", "RuntimeDefault", "windows", "linux",
)  # fmt: skip
_NUMBERS = (-1, 0, 1, 2, 80, 100, 101, 65535, 65536, 70000, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**31), 1.5)


class Base(msgspec.Struct, frozen=True):
    """A valid object and where its kind is served; both have their names filled in."""

    path: str
    object: Obj
    status: bool = False

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def at(self) -> str:
        return f"{self.path}/{self.name}"


class Mutation(msgspec.Struct, frozen=True):
    label: str
    """The kind and what was done to it, for a person who looks at one difference."""
    request: Request


def bases(listed: list[Obj], namespace: str) -> list[Base]:
    """The objects of `objects.yaml` with a name each and this namespace."""
    found = []
    for place, entry in enumerate(listed):
        words = {"{name}": f"{namespace}-{place}", "{namespace}": namespace}
        found.append(msgspec.convert(filled(entry, words), Base))
    return found


def mutations(found: list[Base], seed: int, count: int, shapes: Shapes) -> Iterator[Mutation]:
    for number in range(count):
        draw = random.Random(f"{seed}/{number}")
        yield _Drawn(draw, found[draw.randrange(len(found))], shapes).mutation(f"{seed}/{number}")


class _Drawn:
    """One mutation while it is drawn."""

    def __init__(self, draw: random.Random, base: Base, shapes: Shapes) -> None:
        self._draw = draw
        self._base = base
        self._object = deepcopy(base.object)
        group, _, version = base.object["apiVersion"].rpartition("/")
        self._schema = shapes.of(group, version, base.object["kind"])
        self._done: list[str] = []

    def mutation(self, number: str) -> Mutation:
        draw = self._draw
        on_status = self._base.status and draw.random() < 0.2
        roots = ("status",) if on_status and "status" in self._object else ("spec", "")
        for _ in range(draw.choice((1, 1, 1, 2, MOST_CHANGES))):
            self._change(draw.choice(roots))
        request = self._status_request() if on_status else self._request()
        label = f"{number} {request.method} {self._base.object['kind']} {request.media}: {'; '.join(self._done)}"
        return Mutation(label, request)

    def _request(self) -> Request:
        draw, base = self._draw, self._base
        checks = draw.choice(("", "&fieldValidation=Strict", "&fieldValidation=Ignore"))
        way = draw.random()
        if way < 0.5:
            made = deepcopy(self._object)
            metadata = made.get("metadata")
            if isinstance(metadata, dict) and metadata.get("name") == base.name and "{" not in base.name:
                metadata["name"] = _fresh(base)
            return Request("POST", f"{base.path}?dryRun=All{checks}", made)
        if way < 0.75:
            return Request("PUT", f"{base.at}?dryRun=All{checks}", self._object)
        if way < 0.85:
            return Request("PATCH", f"{base.at}?dryRun=All{checks}", self._object, "merge")
        if way < 0.93:
            return Request("PATCH", f"{base.at}?dryRun=All{checks}", self._object, "strategic")
        return Request("PATCH", f"{base.at}?dryRun=All&fieldManager=other&force=true{checks}", self._object, "apply")

    def _status_request(self) -> Request:
        at = f"{self._base.at}/status?dryRun=All"
        if self._draw.random() < 0.7:
            return Request("PUT", at, self._object)
        return Request("PATCH", at, self._object, "merge")

    # -- one change ----------------------------------------------------------------------------------------------------

    def _change(self, root: str) -> None:
        places = list(_places(self._object, self._schema))
        inside = [one for one in places if one.path.startswith(root) or not root]
        place = self._draw.choice(inside or places)
        value = place.holder[place.key]
        ways = self._ways(value)
        self._draw.choice(ways)(place)

    def _ways(self, value: Any) -> list[Callable[[_Place], None]]:
        ways = [self._remove, self._null, self._other_type]
        if isinstance(value, dict):
            return [*ways, self._empty, self._unknown, self._known, self._known, self._known]
        if isinstance(value, list):
            return [*ways, self._empty, self._repeat, self._repeat, self._many, self._turn]
        if isinstance(value, str):
            return [*ways, *[self._string] * 4, self._word, self._word, self._word_of_object]
        return [*ways, *[self._number] * 5]

    def _put(self, place: _Place, value: Any, what: str) -> None:
        place.holder[place.key] = value
        self._done.append(f"{place.path} {what}")

    def _remove(self, place: _Place) -> None:
        del place.holder[place.key]
        self._done.append(f"{place.path} removed")

    def _null(self, place: _Place) -> None:
        self._put(place, None, "= null")

    def _other_type(self, place: _Place) -> None:
        value = self._draw.choice((1, "word", True, [], {}, ["word"], {"a": "b"}, 1.5))
        self._put(place, value, f"= {value!r}")

    def _empty(self, place: _Place) -> None:
        value = type(place.holder[place.key])()
        self._put(place, value, f"= {value!r}")

    def _unknown(self, place: _Place) -> None:
        self._put(place, {**place.holder[place.key], "unheard": "of"}, "gets an unknown field")

    def _known(self, place: _Place) -> None:
        held = place.holder[place.key]
        schema = place.schema
        absent = sorted({*schema.properties} - {*held}) if schema else []
        if schema and absent:
            name = self._draw.choice(absent)
            value = self._made(schema.properties[name], 2)
        else:
            name, value = self._draw.choice(_STRINGS[1:-1]), self._made(schema.values if schema else None, 1)
        self._put(place, {**held, name: value}, f"gets {name} = {value!r}")

    def _repeat(self, place: _Place) -> None:
        held = place.holder[place.key]
        extra = deepcopy(self._draw.choice(held)) if held else self._made(place.schema and place.schema.items, 1)
        self._put(place, [*held, extra], "repeats an item")

    def _many(self, place: _Place) -> None:
        held = place.holder[place.key]
        extra = held or [self._made(place.schema and place.schema.items, 1)]
        self._put(place, [deepcopy(one) for _ in range(70) for one in extra], "has seventy times as many items")

    def _turn(self, place: _Place) -> None:
        self._put(place, place.holder[place.key][::-1], "turned round")

    def _string(self, place: _Place) -> None:
        value = self._draw.choice(_STRINGS)
        self._put(place, value, f"= {value[:40]!r}")

    def _word(self, place: _Place) -> None:
        value = self._draw.choice(_WORDS)
        self._put(place, value, f"= {value!r}")

    def _word_of_object(self, place: _Place) -> None:
        words = sorted({str(one.holder[one.key]) for one in _places(self._object, None) if _is_text(one)})
        value = self._draw.choice(words)
        self._put(place, value, f"= {value!r}")

    def _number(self, place: _Place) -> None:
        value = self._draw.choice(_NUMBERS)
        self._put(place, value, f"= {value}")

    def _made(self, schema: Schema | None, depth: int) -> Any:
        """Some value of this shape."""
        draw = self._draw
        if schema is None or schema.type == "any":
            return draw.choice(("1Gi", 1, "word"))
        if schema.type == "object":
            if schema.values is not None:
                return {draw.choice(_STRINGS + _WORDS): self._made(schema.values, depth - 1)}
            names = sorted(schema.properties) if depth > 0 else []
            wanted = {*schema.required, *draw.sample(names, min(len(names), 2))} if names else set()
            return {name: self._made(schema.properties[name], depth - 1) for name in sorted(wanted)}
        if schema.type == "array":
            return [self._made(schema.items, depth - 1) for _ in range(draw.choice((0, 1, 1, 2)))]
        if schema.type == "boolean":
            return draw.random() < 0.5
        if schema.type in ("integer", "number"):
            return draw.choice(_NUMBERS)
        return draw.choice(_STRINGS + _WORDS)


class _Place(msgspec.Struct):
    """A value inside an object: `holder[key]`."""

    holder: Any
    key: Any
    path: str
    schema: Schema | None


def _places(value: Any, schema: Schema | None, path: str = "") -> Iterator[_Place]:
    """Every value below this one. What names the object as such stays, except for its metadata."""
    if isinstance(value, dict):
        for key, one in value.items():
            if not path and key in ("apiVersion", "kind"):
                continue
            inside = None if schema is None else schema.properties.get(key, schema.values)
            where = f"{path}.{key}" if path else str(key)
            yield _Place(value, key, where, inside)
            yield from _places(one, inside, where)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            inside = None if schema is None else schema.items
            yield _Place(value, number, f"{path}[{number}]", inside)
            yield from _places(one, inside, f"{path}[{number}]")


def _is_text(place: _Place) -> bool:
    return isinstance(place.holder[place.key], str)


def _fresh(base: Base) -> str:
    """A name that is not taken, of the same form."""
    if base.object["kind"] == "IPAddress":
        return "10.96.77.8"
    return base.name if base.object["kind"] in ("APIService", "CustomResourceDefinition") else f"{base.name}-n"


def filled(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, words) for one in value]
    if isinstance(value, str):
        for word, text in words.items():
            value = value.replace(word, text)
    return value

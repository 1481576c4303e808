"""Objects that nobody in their right mind sends: of the right shape with wrong values, and of the wrong shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.schema.node import Schema

Obj = dict[str, Any]

_NAMES = ("a", "b", "x-y", "", "a" * 64, "a" * 254, "é", "\u0000", "a/b", "1", "80", "80%", "a.b", "kube-system", "A")
_QUANTITIES = (
    "1",
    "-1",
    "1.5",
    "1m",
    "1Gi",
    "1e400",
    "abc",
    "9" * 22,
    "1n",
    "0." + "0" * 12 + "1",
    "1Ei",
    3,
    2.5,
    ".5",
)
_INSTANTS = ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00.5Z", "soon", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59Z")
_WORDS = (
    *(
        "Always",
        "Never",
        "OnFailure",
        "ClusterIP",
        "ExternalName",
        "NodePort",
        "TCP",
        "UDP",
        "RollingUpdate",
        "Recreate",
    ),
    *("NoSchedule", "NoExecute", "Equal", "Exists", "In", "NotIn", "Gt", "DoesNotExist", "10.0.0.1", "::1", "None"),
    *("10.0.0.0/8", "* * * * *", "60 * * * *", "@hourly", "Foreground", "Orphan", "cpu", "pods", "nvidia.com/gpu"),
    *("requests.nvidia.com/gpu", "count/pods", "resourcequotas", "count/resourcequotas", "Resource", "External"),
    *("(a+)+$", "[", "self.foo", "object.spec", "a=b", "1h", "-1h", "65534", "*", "v1", "apps/v1", "Pod", "*/*"),
)
_TEXTS: tuple[Any, ...] = (*_NAMES, *(one for one in _QUANTITIES if isinstance(one, str)), *_INSTANTS, *_WORDS)
_NUMBERS = (0, 1, -1, 80, 65536, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 1000)
_SHARES = ("80%", "200%", "http", 80, 0, -1, "abc", "", 2**31)
_JUNK: tuple[Any, ...] = (
    *(None, True, "", [], {}, [None], [[]], {"a": None}, {"": ""}, [1, "a", None], 1.5, -0.0, 1e308, "\ud800", [{}]),
    {"a": {"b": {"c": []}}},
    [{"name": "a"}, {"name": "a"}],
    {"$patch": "delete"},
    [[[[[[[[{}]]]]]]]],
)


class BadObjects:
    """Draws by one seed, so that what was found can be found again."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def pick(self, values: Sequence[Any]) -> Any:
        return deepcopy(self.random.choice(values))

    def junk(self) -> Any:
        return self.pick(self.pick((_JUNK, _NUMBERS, _TEXTS)))

    def object_of(self, resource: Resource) -> Obj:
        """An object of a kind, most of it of the right types."""
        made = self.value(resource.schema)
        obj = made if isinstance(made, dict) else {}
        obj["metadata"] = {"name": f"n{self.random.randrange(10_000)}"} if self.random.random() < 0.9 else self.junk()
        return obj | {"apiVersion": resource.api_version, "kind": resource.kind}

    def value(self, schema: Schema | None, depth: int = 0) -> Any:
        if schema is None or self.random.random() < 0.03:
            return self.junk()
        if schema.is_quantity:
            return self.pick(_QUANTITIES)
        if schema.is_time:
            return self.pick(_INSTANTS)
        if schema.is_int_or_string:
            return self.pick(_SHARES)
        match schema.type:
            case "string":
                return self.pick(_TEXTS)
            case "integer":
                return self.pick(_NUMBERS)
            case "number":
                return self.pick((0, 1.5, -1, 1e300))
            case "boolean":
                return self.random.random() < 0.5
            case "array":
                return [self.value(schema.items, depth + 1) for _ in range(self.pick((0, 1, 1, 2)) if depth < 9 else 0)]
            case "object":
                return self._members(schema, depth)
            case _:
                return self.pick(_JUNK)

    def worsened(self, obj: Any, schema: Schema | None, times: int) -> Any:
        """The object with so many places changed."""
        worse = deepcopy(obj)
        for _ in range(times):
            places = [place for place in _places(worse, schema) if place[0] not in ("kind", "apiVersion")]
            if places:
                self._worsen(*self.random.choice(places))
        return worse

    def _worsen(self, key: Any, holder: Any, schema: Schema | None) -> None:
        value, how = holder[key], self.random.random()
        if how < 0.15:
            del holder[key]
        elif how < 0.35:
            holder[key] = self.junk()
        elif how < 0.7 and isinstance(value, dict) and schema is not None and schema.properties:
            name = self.pick(list(schema.properties))
            value[name] = self.value(schema.properties[name], 3)
        elif how < 0.8 and isinstance(value, list) and value:
            value.append(self.pick(value))
        else:
            holder[key] = self.value(schema, 2)

    def _members(self, schema: Schema, depth: int) -> Obj:
        if schema.values is not None:
            return {self.pick(_TEXTS): self.value(schema.values, depth + 1) for _ in range(self.pick((0, 1, 2)))}
        names = list(schema.properties)
        if not names:
            found = self.pick(_JUNK)
            return found if isinstance(found, dict) else {}
        more = [] if depth > 8 else self.random.sample(names, min(len(names), self.pick((0, 1, 2, 3, 5))))
        return {name: self.value(schema.properties[name], depth + 1) for name in (*schema.required, *more)}

    def broken(self, body: bytes) -> bytes:
        """A body with a few of its bytes changed, cut or doubled."""
        found = bytearray(body)
        for _ in range(self.pick((1, 1, 2, 5))):
            place, how = self.random.randrange(len(found) + 1), self.random.random()
            if how < 0.3:
                found[place : place + 1] = bytes([self.random.randrange(256)])
            elif how < 0.5:
                del found[place : place + self.pick((1, 3, 50))]
            elif how < 0.85:
                found[place:place] = self.pick(_BYTES)
            else:
                del found[place:]
        return bytes(found)


_BYTES = (
    *(b"\x00", b"\xff", b'"', b"{", b"[", b"}", b"]", b",", b":", b"1e400", b"-0", b"\\ud800", b"\\u0000", b"null"),
    *(b"9" * 30, b"\n", b"- ", b"? ", b"&a ", b"*a", b"!!str ", b"|\n", b"%", b"\t", b"<<: ", b"0x", b"\xef\xbb\xbf"),
)


def _places(obj: Any, schema: Schema | None) -> Iterator[tuple[Any, Any, Schema | None]]:
    """Each key with what holds it and the schema of its value."""
    if isinstance(obj, dict):
        for key, value in obj.items():
            below = None if schema is None else schema.properties.get(key) or schema.values
            yield key, obj, below
            yield from _places(value, below)
    elif isinstance(obj, list):
        for index, value in enumerate(obj):
            below = None if schema is None else schema.items
            yield index, obj, below
            yield from _places(value, below)

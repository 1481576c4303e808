"""Evaluates device selectors: CEL expressions over one device, with the semantics of Kubernetes.

Quantities and versions are types of their own in Kubernetes' CEL. Here a quantity is bytes (its exact amount in
nano-units, in digits) and a version is a list: device attributes have neither type otherwise, so methods of one are
rejected on the other, and equality is correct.

In Kubernetes, a domain without attributes reads as an empty map, though it is not "in" the map of domains. This
evaluator knows only plain maps: when a look-up of a domain fails, the expression is evaluated again with an empty map
for that domain.

Guarantees: the cost of an expression is bounded (its length by the API's checks, its loops by the evaluator), and every
error is text, never an exception: `Selector.fault` for an invalid expression, `Fault` for one that fails on a device.
Not supported: Kubernetes' own libraries beside quantities, versions and strings (URLs, IP addresses, regular
expressions beyond `matches`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from shoal.units.errors import UserError, one_line
from shoal.units.near_texts import aside_words
from shoal.units.quantity import NANO, Quantity
from shoal.units.semver import compare_versions, is_version, parse_version

_MISSING = 'Key not found in map : "'
_MOST_DOMAINS = 32
_BY_DOMAIN = ("attributes", "capacity")


class Fault(msgspec.Struct, frozen=True):
    """An expression failed on a device."""

    what: str


class Selector:
    """One expression, compiled."""

    __slots__ = ("_compiled", "fault")

    def __init__(self, expression: str) -> None:
        self.fault = ""
        """Why the expression is invalid; empty for a valid expression."""
        self._compiled: Any = None
        try:
            self._compiled = _environment().compile(expression)
        except (RuntimeError, ValueError) as error:
            self.fault = _compiler_words(str(error))

    def selects(self, device: Mapping[str, Any]) -> bool | Fault:
        """Whether the expression selects a device (see `device_value`)."""
        for _ in range(_MOST_DOMAINS):
            try:
                result = self._compiled.eval(data={"device": device})
            except (RuntimeError, ValueError) as error:
                return Fault(one_line(str(error)))
            kind = result.type().name()
            if kind == "BOOL":
                return bool(result.value())
            if kind != "ERROR":
                return Fault(f"it comes to {kind.lower()} where true or false is wanted")
            words = str(result.value())
            _, found, key = words.partition(_MISSING)
            if not found or not key.endswith('"'):
                return Fault(one_line(words.partition(": ")[2] or words))
            missing = key.removesuffix('"')
            if all(missing in device[field] for field in _BY_DOMAIN):
                return Fault(f"no such key: {missing}{aside_words(missing, _identifiers(device))}")
            device = _with_domain(device, missing)
        return Fault(f"it looks at more than {_MOST_DOMAINS} domains that the device does not have")


@lru_cache(maxsize=4096)
def selector_of(expression: str) -> Selector:
    """The selector of an expression; cached, because classes and templates repeat a few expressions."""
    return Selector(expression)


def device_value(
    driver: str,
    attributes: Mapping[str, tuple[str, bool | int | str]],
    capacity: Mapping[str, Quantity],
    shared: bool,
) -> dict[str, Any]:
    """A device as expressions see it; attributes (kind, value) and capacities by their full names."""
    return {
        "driver": driver,
        "attributes": _by_domain({name: _attribute(*value) for name, value in attributes.items()}),
        "capacity": _by_domain({name: _bytes(amount) for name, amount in capacity.items()}),
        "allowMultipleAllocations": shared,
    }


def _attribute(kind: str, value: bool | int | str) -> Any:
    return parse_version(str(value)) if kind == "version" else value


def _by_domain(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    domains: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, _, identifier = name.rpartition("/")
        domains.setdefault(domain, {})[identifier] = value
    return domains


def _identifiers(device: Mapping[str, Any]) -> set[str]:
    """Of all domains."""
    return {name for field in _BY_DOMAIN for values in device[field].values() for name in values}


def _with_domain(device: Mapping[str, Any], domain: str) -> dict[str, Any]:
    return {**device, **{field: {domain: {}, **device[field]} for field in _BY_DOMAIN}}


def _compiler_words(text: str) -> str:
    """The first error message of the compiler, without the source excerpt below it."""
    first = text.partition("\n")[0].partition("ERROR: ")[2] or text
    return one_line(first.replace("<input>:", "at "))


# -- quantities ------------------------------------------------------------------------------------------------


def _bytes(amount: Quantity) -> bytes:
    return str(amount.nano).encode()


def _quantity(text: str) -> bytes:
    try:
        return _bytes(Quantity.parse(text))
    except UserError as error:
        raise ValueError(error.what) from error


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except UserError:
        return False
    return True


def _compare(one: bytes, other: bytes) -> int:
    return (int(one) > int(other)) - (int(one) < int(other))


def _as_integer(amount: bytes) -> int:
    whole, rest = divmod(int(amount), NANO)
    if rest:
        raise ValueError("the quantity is not a whole number")
    return whole


def _sum(one: bytes, other: bytes, sign: int = 1) -> bytes:
    return str(int(one) + sign * int(other)).encode()


# -- the environment -------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _environment() -> Any:
    # The import takes forty milliseconds, which commands that read no claims must not spend.
    from cel_expr_python import cel
    from cel_expr_python.ext.ext_bindings import ExtBindings
    from cel_expr_python.ext.ext_math import ExtMath
    from cel_expr_python.ext.ext_optional import ExtOptional
    from cel_expr_python.ext.ext_strings import ExtStrings

    kinds = cel.Type
    text, truth, whole, real = kinds.STRING, kinds.BOOL, kinds.INT, kinds.DOUBLE
    quantity, version = kinds.BYTES, kinds.List(kinds.DYN)

    def function(name: str, *overloads: tuple[list[Any], Any, Callable[..., Any]], member: bool = True) -> Any:
        made = [
            cel.Overload(f"shoal_{name}_{number}", returns, takes, member, does)
            for number, (takes, returns, does) in enumerate(overloads)
        ]
        return cel.FunctionDecl(name, made)

    def order(name: str, holds: Callable[[int], bool]) -> Any:
        return function(
            name,
            ([quantity, quantity], truth, lambda one, other: holds(_compare(one, other))),
            ([version, version], truth, lambda one, other: holds(compare_versions(one, other))),
        )

    functions = [
        function("quantity", ([text], quantity, _quantity), member=False),
        function("isQuantity", ([text], truth, _is_quantity), member=False),
        function(
            "semver",
            ([text], version, parse_version),
            ([text, truth], version, lambda written, loose: parse_version(written, is_loose=loose)),
            member=False,
        ),
        function(
            "isSemver",
            ([text], truth, is_version),
            ([text, truth], truth, lambda written, loose: is_version(written, is_loose=loose)),
            member=False,
        ),
        order("isLessThan", lambda sign: sign < 0),
        order("isGreaterThan", lambda sign: sign > 0),
        function(
            "compareTo",
            ([quantity, quantity], whole, _compare),
            ([version, version], whole, compare_versions),
        ),
        function("sign", ([quantity], whole, lambda one: _compare(one, b"0"))),
        function("isInteger", ([quantity], truth, lambda one: int(one) % NANO == 0)),
        function("asInteger", ([quantity], whole, _as_integer)),
        function("asApproximateFloat", ([quantity], real, lambda one: int(one) / NANO)),
        function(
            "add",
            ([quantity, quantity], quantity, _sum),
            ([quantity, whole], quantity, lambda one, other: _sum(one, str(other * NANO).encode())),
        ),
        function(
            "sub",
            ([quantity, quantity], quantity, lambda one, other: _sum(one, other, -1)),
            ([quantity, whole], quantity, lambda one, other: _sum(one, str(other * NANO).encode(), -1)),
        ),
        *(
            function(name, ([version], whole, lambda one, place=place: int(one[place])))
            for place, name in enumerate(("major", "minor", "patch"))
        ),
    ]
    return cel.NewEnv(
        variables={"device": kinds.Map(text, kinds.DYN)},
        extensions=[ExtStrings(), ExtOptional(), ExtBindings(), ExtMath()],
        functions=functions,
    )

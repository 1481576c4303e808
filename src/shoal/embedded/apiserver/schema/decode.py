"""Read an object of a built-in kind as Go does: its own fields only, of the right types, in canonical spelling.

`conform` changes the object in place. Fields that the kind does not have go, and are named in the answer: the caller
refuses them, warns of them or ignores them as the client asked. Nulls go, and so do empty values that Go leaves out. A
value of the wrong type is refused at once in the words of Go's decoder, which clients know.

It runs on every write, so each shape is compiled once to a closure (`walk.py`); a pod takes some 20 microseconds.
Rejected: msgspec structs of every kind, which would be faster to read and slower in all that is done to the object
after that, for everything else works on plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.embedded.apiserver.schema.go_values import UndecodableError
from shoal.embedded.apiserver.schema.kubernetes import GoSchema
from shoal.embedded.apiserver.schema.node import Schema
from shoal.embedded.apiserver.schema.walk import walker
from shoal.embedded.apiserver.status import ApiError, bad_request

_MOST_PROBLEMS = 100
"""Go names no more than these."""


def conform(obj: dict[str, Any], schema: Schema, *, kind: str, api_version: str) -> list[str]:
    """Make `obj` what Go would have read; what strict decoding has against it, as `unknown field "spec.replicaz"`."""
    try:
        return read(obj, schema)
    except UndecodableError as error:
        raise undecodable(error.text(), kind=kind, api_version=api_version) from None


def read(obj: dict[str, Any], schema: Schema) -> list[str]:
    """As `conform`, for callers with words of their own (patches): raises `UndecodableError`."""
    if not isinstance(schema, GoSchema):
        return []
    found = walker(schema)(obj)
    return [f'unknown field "{path[1:]}"' for path in found[:_MOST_PROBLEMS]] if found else []


def undecodable(words: str, *, kind: str, api_version: str) -> ApiError:
    version = api_version.rpartition("/")[2]
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {words}')


def strict_words(problems: Sequence[str]) -> str:
    return f"strict decoding error: {', '.join(problems)}"


def strict_error(problems: Sequence[str], *, kind: str, api_version: str) -> ApiError:
    """The error for a client that requested strict validation."""
    return undecodable(strict_words(problems), kind=kind, api_version=api_version)

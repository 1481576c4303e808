"""Reads the bodies of subresources that have a kind of their own: Binding, Eviction, Scale, TokenRequest.

Their bodies are read like those of any object, by the schema of their kind; what they then do is none of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.resource import Obj, Resource, Subresource
from shoal.embedded.apiserver.rest.incoming import accepted
from shoal.embedded.apiserver.schema.node import Schema

SchemaOf = Callable[[str, str, str], Schema]
"""By group, version and kind; of built-in kinds."""

_OLD_EVICTION = "policy/v1beta1"
"""Taken as ever, though nothing else of this version is served: drains of old clients send it."""


class SubresourceBodies:
    """Reads the bodies of doors."""

    def __init__(self, schema_of: SchemaOf) -> None:
        self._schema_of = schema_of

    def read(self, call: Call, body: object, duplicates: Sequence[str] = ()) -> Obj:
        """What was said. Warnings of unknown fields go to the call; an empty body says nothing."""
        heard = self.heard(call)
        if isinstance(body, dict) and body.get("apiVersion") == _OLD_EVICTION and heard.resource.kind == "Eviction":
            body = {**body, "apiVersion": heard.resource.api_version}
        if body is None:
            raise status.bad_request(f"the body is not a {heard.resource.kind}")
        return accepted(heard, body, duplicates)

    def heard(self, call: Call) -> Call:
        """The call as one about the kind that is spoken there."""
        subresource = call.resource.subresource(call.subresource) if call.subresource else None
        return call if subresource is None or not subresource.kind else self._at(call, subresource)

    def schema(self, call: Call) -> Schema:
        """Of the kind that belongs to the call's subresource."""
        subresource = call.resource.subresource(call.subresource)
        return self._at(call, subresource).resource.schema if subresource is not None else call.resource.schema

    def _at(self, call: Call, subresource: Subresource) -> Call:
        schema = self._schema_of(subresource.group, subresource.version, subresource.kind)
        kind = Resource(
            subresource.group,
            subresource.version,
            call.resource.plural,
            subresource.kind,
            call.resource.namespaced,
            schema=schema,
        )
        return msgspec.structs.replace(call, resource=kind)

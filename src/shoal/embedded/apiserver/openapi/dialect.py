"""Translates between OpenAPI 2 and 3 where they express the same thing differently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

Json = dict[str, Any]

JSON_BODY = "application/json"
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
CUSTOM_PATCHES = (PATCHES[0], PATCHES[1], PATCHES[3])


class Dialect(msgspec.Struct, frozen=True):
    version: int

    def ref(self, definition: str) -> str:
        return f"#/components/schemas/{definition}" if self.version == 3 else f"#/definitions/{definition}"

    def field(self, reference: str, extras: Json) -> Json:
        """A field of another definition's type with a word of its own: version 3 takes none beside a `$ref`."""
        if not extras:
            return {"$ref": self.ref(reference)}
        if self.version == 3:
            return {"allOf": [{"$ref": self.ref(reference)}], **extras}
        return {"$ref": self.ref(reference), **extras}

    def either(self, text_or: str, form: str, description: str) -> Json:
        """A value that is text or a number, as version 2 cannot say."""
        if self.version == 2:
            return {"description": description, "type": "string", **({"format": form} if form else {})}
        found: Json = {"description": description, "oneOf": [{"type": "string"}, {"type": text_or}]}
        return {**found, "format": form} if form else found

    def parameter(self, name: str, place: str, kind: str) -> Json:
        found: Json = {"name": name, "in": place}
        if place == "path":
            found["required"] = True
        return {**found, "schema": {"type": kind}} if self.version == 3 else {**found, "type": kind}

    def body(self, definition: str, media: Sequence[str]) -> Json:
        """What an operation takes, to be merged into it."""
        schema = {"$ref": self.ref(definition)}
        if self.version == 3:
            return {"requestBody": {"content": {one: {"schema": schema} for one in media}, "required": True}}
        return {"consumes": list(media), "parameters": [{"name": "body", "in": "body", "schema": schema}]}

    def answer(self, definition: str, code: str) -> Json:
        schema = {"$ref": self.ref(definition)}
        if self.version == 3:
            return {code: {"description": "OK", "content": {JSON_BODY: {"schema": schema}}}}
        return {code: {"description": "OK", "schema": schema}}

    def document(self, minor: str, paths: Json, schemas: Json) -> Json:
        info = {"title": "Kubernetes", "version": f"v{minor}.0"}
        if self.version == 3:
            return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}
        return {"swagger": "2.0", "info": info, "paths": paths, "definitions": schemas}


V2 = Dialect(2)
V3 = Dialect(3)

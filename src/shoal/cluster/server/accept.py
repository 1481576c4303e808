"""Which form of an answer a client accepts: plain objects, tables for people, or metadata alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec

from shoal.cluster.status import not_acceptable

Shape = Literal["object", "table", "partial"]


class Form(msgspec.Struct, frozen=True):
    shape: Shape = "object"
    is_yaml: bool = False
    version: str = "v1"
    """Of meta.k8s.io, in which tables and partial objects are made."""


PLAIN = Form()
_SHAPES: dict[str, Shape] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial",
}


@lru_cache(maxsize=512)
def form_of(accept: str) -> Form:
    """The first form in the header that this server can make."""
    if not accept:
        return PLAIN
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        if media not in ("application/json", "application/yaml", "*/*", "application/*"):
            continue
        named = dict(part.split("=", 1) for part in parameters if "=" in part)
        shape = named.get("as", "")
        if not shape:
            return Form(is_yaml=media == "application/yaml")
        if shape in _SHAPES and named.get("g") == "meta.k8s.io" and named.get("v") in ("v1", "v1beta1"):
            return Form(_SHAPES[shape], media == "application/yaml", named["v"])
    raise not_acceptable("only the following media types are accepted: application/json, application/yaml")

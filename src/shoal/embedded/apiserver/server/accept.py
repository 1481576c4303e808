"""Negotiates the form of an answer: objects, tables or metadata only."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec

from shoal.embedded.apiserver.status import not_acceptable

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


_MEDIA = ("application/json", "application/yaml")


@lru_cache(maxsize=512)
def form_of(accept: str, *, streams: bool = False) -> Form:
    """The first form in the header that this server can make; `streams` where the path has watches too."""
    if not accept:
        return PLAIN
    is_known = False
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        if media not in _MEDIA and media != "*/*":
            continue
        is_known = True
        named = dict(part.split("=", 1) for part in parameters if "=" in part)
        shape = named.get("as", "")
        if not shape:
            return Form(is_yaml=media == "application/yaml")
        if shape in _SHAPES and named.get("g") == "meta.k8s.io" and named.get("v") in ("v1", "v1beta1"):
            return Form(_SHAPES[shape], media == "application/yaml", named["v"])
    if is_known:
        raise not_acceptable(f"only the following media types are accepted: {', '.join(_MEDIA)}")
    made = (*_MEDIA, "application/json;stream=watch") if streams else _MEDIA
    raise not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {', '.join(made)}", {})

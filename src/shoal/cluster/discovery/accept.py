"""Which form of the discovery documents a client takes, read from its Accept header."""

from __future__ import annotations

from typing import Literal

Form = Literal["legacy", "v2", "v2beta1"]


def form_of(accept: str) -> Form:
    """The first form in the client's list that is served; who asks for anything gets the older documents."""
    for clause in accept.split(","):
        media, *parameters = (piece.strip() for piece in clause.split(";"))
        if media not in ("application/json", "application/*", "*/*"):
            continue
        asked = dict(piece.partition("=")[::2] for piece in parameters)
        if "as" not in asked and "g" not in asked:
            return "legacy"
        if asked.get("g") == "apidiscovery.k8s.io" and asked.get("as") == "APIGroupDiscoveryList":
            version = asked.get("v")
            if version == "v2":
                return "v2"
            if version == "v2beta1":
                return "v2beta1"
    return "legacy"


def content_type(form: Form) -> str:
    if form == "legacy":
        return "application/json"
    return f"application/json;g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList"

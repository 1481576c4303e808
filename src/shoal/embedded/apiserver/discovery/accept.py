"""Negotiates the form of discovery documents by the Accept header.

A header without any form that is served is refused in the words of Kubernetes. It has two sets of them: the routes of
`/api` and of the versions of built-in groups are those of its router, which knows media types and no more.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.embedded.apiserver.status import not_acceptable

Generation = Literal["legacy", "v2", "v2beta1"]
_JSON, _YAML = "application/json", "application/yaml"
_SERVED = f"{_JSON}, {_YAML}"


class Form(msgspec.Struct, frozen=True):
    generation: Generation = "legacy"
    is_yaml: bool = False

    @property
    def content_type(self) -> str:
        media = _YAML if self.is_yaml else _JSON
        if self.generation == "legacy":
            return media
        return f"{media};g=apidiscovery.k8s.io;v={self.generation};as=APIGroupDiscoveryList"


def form_of(accept: str, *, is_aggregated: bool, is_routed: bool) -> Form:
    """The first form in the client's list that is served. `is_aggregated`: the newer documents are served here too."""
    if not accept:
        return Form()
    is_known = False
    for clause in accept.split(","):
        media, *parameters = (piece.strip() for piece in clause.split(";"))
        if media not in (_JSON, _YAML, "*/*") and (is_routed or media != "application/*"):
            continue
        is_known = True
        asked = dict(piece.partition("=")[::2] for piece in parameters)
        is_yaml = media == _YAML
        if "as" not in asked and "g" not in asked:
            return Form(is_yaml=is_yaml)
        is_list = asked.get("g") == "apidiscovery.k8s.io" and asked.get("as") == "APIGroupDiscoveryList"
        if is_aggregated and is_list:
            version = asked.get("v")
            if version == "v2":
                return Form("v2", is_yaml)
            if version == "v2beta1":
                return Form("v2beta1", is_yaml)
    if is_routed and not is_known:
        raise not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {_SERVED}", {})
    raise not_acceptable(f"only the following media types are accepted: {_SERVED}")


def check_media(accept: str, served: str) -> None:
    """For documents that are there in one form alone."""
    media = {clause.partition(";")[0].strip() for clause in accept.split(",")}
    if accept and not media & {served, "*/*"}:
        raise not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {served}", {})

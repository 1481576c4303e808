"""Routes the paths of documents to the parts that make them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.embedded.apiserver.discovery.accept import check_media
from shoal.embedded.apiserver.discovery.documents import DiscoveryDocuments
from shoal.embedded.apiserver.openapi.answers import openapi_answer
from shoal.embedded.apiserver.openapi.documents import Documents as OpenApi
from shoal.embedded.apiserver.security.authority import Authority
from shoal.embedded.apiserver.security.issuer_documents import CONFIGURATION_PATH, KEYS_PATH, key_set
from shoal.embedded.apiserver.security.issuer_documents import configuration as issuer_configuration
from shoal.embedded.apiserver.server.documents import Made, Maker


class Sent(msgspec.Struct, frozen=True):
    """A document that is always the same."""

    body: bytes
    content_type: str = "application/json"
    etag: str = ""


def discovery_makers(discovery: DiscoveryDocuments) -> Mapping[str, Maker]:
    def api(path: str, _: Mapping[str, str], accept: str) -> Made | None:
        parts = [part for part in path.split("/") if part]
        if len(parts) == 1:
            return discovery.api(accept)
        return discovery.resources("", parts[1], accept) if len(parts) == 2 else None

    def apis(path: str, _: Mapping[str, str], accept: str) -> Made | None:
        parts = [part for part in path.split("/") if part]
        if len(parts) == 1:
            return discovery.apis(accept)
        if len(parts) == 2:
            return discovery.group(parts[1], accept)
        return discovery.resources(parts[1], parts[2], accept) if len(parts) == 3 else None

    return {"api": api, "apis": apis}


def openapi_maker(documents: OpenApi) -> Maker:
    def openapi(path: str, _: Mapping[str, str], accept: str) -> Made | None:
        return openapi_answer(documents, path, accept)

    return openapi


def issuer_makers(authority: Authority, url: str) -> Mapping[str, Maker]:
    """Where others learn how to check service account tokens."""
    configuration = fixed(CONFIGURATION_PATH, issuer_configuration(url))
    keys = fixed(KEYS_PATH, key_set(authority.signing_key), "application/jwk-set+json")
    return {".well-known": configuration, "openid": keys}


def fixed(path: str, body: Mapping[str, object], content_type: str = "application/json") -> Maker:
    made = Sent(msgspec.json.encode(body), content_type)

    def maker(asked: str, _: Mapping[str, str], accept: str) -> Made | None:
        if asked.rstrip("/") != path:
            return None
        check_media(accept, content_type)
        return made

    return maker

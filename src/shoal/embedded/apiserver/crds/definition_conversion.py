"""Checks the conversion section of a definition."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from shoal.embedded.apiserver.names import label_1035_fault

Obj = dict[str, Any]
_CLIENT = "spec.conversion.webhookClientConfig"
_REVIEWS = "spec.conversion.conversionReviewVersions"


def conversion_errors(conversion: Obj | None) -> list[FieldError]:
    if not conversion:
        return []
    strategy, webhook = conversion.get("strategy", ""), conversion.get("webhook") or {}
    if not strategy:
        return [required("spec.conversion.strategy")]
    if strategy not in ("None", "Webhook"):
        return [not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))]
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == "None":
        words = "should not be set when strategy is not set to Webhook"
        return [
            *([not_allowed(_CLIENT, words)] if client is not None else []),
            *([not_allowed(_REVIEWS, words)] if reviews else []),
        ]
    return [*_client_errors(client), *_review_errors(reviews)]


def _client_errors(client: Obj | None) -> list[FieldError]:
    if client is None:
        return [required(_CLIENT, "required when strategy is set to Webhook")]
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(_CLIENT, "exactly one of url or service is required")]
    return _url_errors(url) if url is not None else _service_errors(service or {})


def _url_errors(url: str) -> list[FieldError]:
    where, form = f"{_CLIENT}.url", "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return [required(where, f"url must be a valid URL: {error}{form}")]
    faults = []
    if parts.scheme != "https":
        faults.append(bad_value(where, parts.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not parts.netloc:
        faults.append(bad_value(where, parts.netloc, f"host must be specified{form}"))
    if parts.username is not None:
        faults.append(bad_value(where, parts.username, "user information is not permitted in the URL"))
    if parts.fragment:
        faults.append(bad_value(where, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        faults.append(bad_value(where, parts.query, "query parameters are not permitted in the URL"))
    return faults


def _service_errors(service: Obj) -> list[FieldError]:
    where = f"{_CLIENT}.service"
    faults = [
        required(f"{where}.{key}", f"service {key} is required")
        for key in ("name", "namespace")
        if not service.get(key)
    ]
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        faults.append(bad_value(f"{where}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    path = service.get("path")
    if path and not path.startswith("/"):
        faults.append(bad_value(f"{where}.path", path, "must start with a '/'"))
    return faults


def _review_errors(reviews: list[str]) -> list[FieldError]:
    if not reviews:
        return [required(_REVIEWS)]
    faults = []
    for index, version in enumerate(reviews):
        if version in reviews[:index]:
            faults.append(bad_value(f"{_REVIEWS}[{index}]", version, "duplicate version"))
        elif fault := label_1035_fault(version):
            faults.append(bad_value(f"{_REVIEWS}[{index}]", version, fault))
    if not {"v1", "v1beta1"} & {*reviews}:
        faults.append(bad_value(_REVIEWS, reviews, "must include at least one of v1, v1beta1"))
    return faults

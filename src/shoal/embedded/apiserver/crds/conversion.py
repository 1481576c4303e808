"""Custom objects from one version to another: by changing what they call themselves, by the server itself for the kinds
that it provides, or by a webhook.

The posting of the review is the caller's (`Post`): it knows endpoints, certificates and time-outs. What comes back is
trusted with nothing but content: identity and all metadata but labels and annotations stay the original's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.resource import Resource
from shoal.units.errors import UserError

Obj = dict[str, Any]
Post = Callable[[Obj, Obj], Awaitable[Obj]]
"""Sends a ConversionReview (second) to a webhook's clientConfig (first). What fails is an exception with its words."""


class ConversionFault(Exception):  # noqa: N818 - the caller answers with it
    """A webhook did not convert; the text says why."""


class Conversion(msgspec.Struct, frozen=True):
    """From where to where."""

    resource: Resource
    to_version: str
    uid: str
    """Of the review: fresh for each call."""

    @property
    def wanted(self) -> str:
        return f"{self.resource.group}/{self.to_version}"


async def convert(objs: Sequence[Obj], conversion: Conversion, post: Post) -> list[Obj]:
    """The objects in the wanted version, in their order; an ApiError 500 where that fails. Inputs stay as they are."""
    wanted = conversion.wanted
    webhook = conversion.resource.conversion_webhook
    apart = [obj for obj in objs if obj.get("apiVersion") != wanted]
    if not apart:
        return list(objs)
    if webhook is None:
        return [converted_here(obj, wanted, conversion.resource) for obj in objs]
    first = apart[0]
    group, _, version = str(first.get("apiVersion", "")).rpartition("/")
    kind = f"{group}/{version}, Kind={first.get('kind')}"
    try:
        converted = iter(await _reviewed(apart, conversion, webhook, post, kind))
    except ConversionFault as fault:
        raise status.internal(str(fault)) from fault
    return [obj if obj.get("apiVersion") == wanted else next(converted) for obj in objs]


def converted_here(obj: Obj, to: str, resource: Resource) -> Obj:
    """Without a webhook; raises ApiError 500 if that fails."""
    if resource.converter is None or obj.get("apiVersion") == to:
        return {**obj, "apiVersion": to}
    try:
        return resource.converter(obj, to)
    except UserError as error:
        raise status.internal(f"conversion of {resource.kind} to {to} failed: {error}") from error


async def _reviewed(apart: list[Obj], conversion: Conversion, webhook: Obj, post: Post, kind: str) -> list[Obj]:
    versions = webhook.get("conversionReviewVersions") or ()
    review_version = next((one for one in versions if one in ("v1", "v1beta1")), "")
    if not review_version:
        raise ConversionFault("no supported conversion review versions")
    review = {
        "kind": "ConversionReview",
        "apiVersion": f"apiextensions.k8s.io/{review_version}",
        "request": {"uid": conversion.uid, "desiredAPIVersion": conversion.wanted, "objects": apart},
    }
    try:
        answer = await post(webhook.get("clientConfig") or {}, review)
    except ConversionFault:
        raise
    except Exception as error:
        raise ConversionFault(f"conversion webhook for {kind} failed: {error}") from error
    fault = _answer_fault(answer, review)
    if fault:
        raise ConversionFault(f"conversion webhook for {kind} failed: {fault}")
    found = answer["response"].get("convertedObjects") or []
    if len(found) != len(apart):
        raise ConversionFault(f"conversion webhook for {kind} returned {len(found)} objects, expected {len(apart)}")
    return [
        _accepted(before, after, index, conversion, kind)
        for index, (before, after) in enumerate(zip(apart, found, strict=True))
    ]


def _answer_fault(answer: Any, review: Obj) -> str:
    if not isinstance(answer, dict):
        return "no response provided"
    if review["apiVersion"].endswith("/v1"):
        got = f"{answer.get('apiVersion', '')}, Kind={answer.get('kind', '')}"
        if (answer.get("apiVersion"), answer.get("kind")) != (review["apiVersion"], "ConversionReview"):
            return f"expected webhook response of {review['apiVersion']}, Kind=ConversionReview, got {got}"
    response = answer.get("response")
    if not isinstance(response, dict):
        return "no response provided"
    uid = review["request"]["uid"]
    if review["apiVersion"].endswith("/v1") and response.get("uid") != uid:
        return f'expected response.uid="{uid}", got "{response.get("uid", "")}"'
    result = response.get("result") or {}
    if result.get("status") != "Success":
        return str(result.get("message") or f"response.result.status was '{result.get('status', '')}', not 'Success'")
    return ""


def _accepted(before: Obj, after: Any, index: int, conversion: Conversion, kind: str) -> Obj:
    """The converted object with the original's metadata."""
    lead = f"conversion webhook for {kind} returned invalid"
    if not isinstance(after, dict):
        raise ConversionFault(f"{lead} converted object at index {index}: invalid type, expected=Unstructured")
    if after.get("apiVersion") != conversion.wanted:
        words = f"invalid groupVersion (expected {conversion.wanted}, received {after.get('apiVersion', '')})"
        raise ConversionFault(f"{lead} converted object at index {index}: {words}")
    if after.get("kind") != before.get("kind"):
        words = f"invalid kind (expected {before.get('kind')}, received {after.get('kind', '')})"
        raise ConversionFault(f"{lead} converted object at index {index}: {words}")
    metadata = after.get("metadata")
    if not isinstance(metadata, dict):
        raise ConversionFault(f"{lead} metadata in object at index {index}: missing metadata in converted object")
    original = before.get("metadata") or {}
    for key, word in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        was, now = original.get(key, ""), metadata.get(key, "")
        if was != now:
            raise ConversionFault(
                f"{lead} converted object at index {index}: must have the same {word}: {was} != {now}"
            )
    kept = deepcopy(original)
    for key in ("labels", "annotations"):
        held = metadata.get(key)
        if held is None:
            kept.pop(key, None)
        elif not isinstance(held, dict) or any(not isinstance(value, str) for value in held.values()):
            raise ConversionFault(
                f"{lead} metadata in object at index {index}: invalid metadata.{key} in converted object"
            )
        else:
            kept[key] = held
    return {**after, "metadata": kept}

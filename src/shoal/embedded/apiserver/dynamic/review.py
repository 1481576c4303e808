"""One webhook asked about one write: the review that is sent, and what is made of the answer.

Two things go wrong: the webhook could not be asked (`WebhookError`: its failure policy decides), or it said no (an
ApiError, final).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission_request import request_of
from shoal.embedded.apiserver.bodies.decode import json_value
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.dynamic.posting import CallError, Posting
from shoal.embedded.apiserver.dynamic.webhook import Webhook
from shoal.embedded.apiserver.resource import Resource

Obj = dict[str, Any]
_HARMLESS = ("None", "NoneOnDryRun")


class WebhookError(Exception):
    """A webhook could not be asked; the text is the whole of Kubernetes' message."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f'failed calling webhook "{name}": {why}')


class WebhookRequest(msgspec.Struct, frozen=True):
    """What one webhook is asked: the write, in the version that its rule names."""

    webhook: Webhook
    admission: AdmissionAttributes
    resource: Resource
    obj: Obj | None
    old: Obj | None


class Reviewing:
    def __init__(self, posting: Posting, new_uid: Callable[[], str]) -> None:
        self._posting = posting
        self._new_uid = new_uid

    async def ask(self, asked: WebhookRequest, *, mutates: bool) -> list[Any]:
        """The operations of the patch that a webhook answers with; none of one that only says yes."""
        webhook, admission = asked.webhook, asked.admission
        _check_dry_run(webhook, admission)
        uid = self._new_uid()
        api_version = f"admission.k8s.io/{webhook.review_version}"
        request = {
            "uid": uid,
            **request_of(admission, asked.resource),
            "object": asked.obj,
            "oldObject": asked.old,
        }
        review = {"kind": "AdmissionReview", "apiVersion": api_version, "request": request}
        try:
            answer = await self._posting.post(webhook.client, review, webhook.timeout_s)
        except CallError as error:
            raise WebhookError(webhook.name, f"failed to call webhook: {error}") from None
        response = answer.get("response")
        fault = _fault(answer, uid, webhook.review_version, mutates=mutates)
        if fault or not isinstance(response, dict):
            raise WebhookError(webhook.name, f"received invalid webhook response: {fault}")
        for text in response.get("warnings") or ():
            admission.warn(str(text))
        if not response.get("allowed"):
            raise _refusal(webhook.name, response.get("status"))
        return _operations(webhook, response) if mutates else []


def _check_dry_run(webhook: Webhook, admission: AdmissionAttributes) -> None:
    if not admission.call.dry_run:
        return
    if not webhook.side_effects:
        raise WebhookError(webhook.name, "Webhook SideEffects is nil")
    if webhook.side_effects not in _HARMLESS:
        raise status.bad_request(f'admission webhook "{webhook.name}" does not support dry run')


def _fault(answer: Obj, uid: str, version: str, *, mutates: bool) -> str:
    """What is wrong with the form of an answer."""
    found = answer.get("apiVersion", "")
    group, _, answered = str(found).rpartition("/")
    if answer.get("kind") != "AdmissionReview" or group != "admission.k8s.io" or answered not in ("v1", "v1beta1"):
        expected = f"admission.k8s.io/{version}, Kind=AdmissionReview"
        return f"expected webhook response of {expected}, got {found}, Kind={answer.get('kind', '')}"
    response = answer.get("response")
    if not isinstance(response, dict):
        return "webhook response was absent"
    if version == "v1" and response.get("uid", "") != uid:
        return f'expected response.uid="{uid}", got "{response.get("uid", "")}"'
    if answered != version:
        expected = f"admission.k8s.io/{version}, Kind=AdmissionReview"
        return f"expected webhook response of {expected}, got {found}, Kind=AdmissionReview"
    return _patch_fault(response, mutates=mutates) if version == "v1" else ""


def _patch_fault(response: Obj, *, mutates: bool) -> str:
    patch, kind = response.get("patch"), response.get("patchType")
    if not mutates:
        if patch:
            return "validating webhook may not return response.patch"
        return "validating webhook may not return response.patchType" if kind is not None else ""
    if patch and kind is None:
        return "webhook returned response.patch but not response.patchType"
    if not patch and kind is not None:
        return "webhook returned response.patchType but not response.patch"
    if patch and kind != "JSONPatch":
        return f'webhook returned invalid response.patchType of "{kind}"'
    return ""


def _refusal(name: str, result: Any) -> status.ApiError:
    """What the webhook said, as an answer to the client: never a success."""
    found: Obj = result if isinstance(result, dict) else {}
    code = found.get("code")
    code = code if isinstance(code, int) and 400 <= code <= 599 else 400
    said, reason = found.get("message"), found.get("reason") or ""
    lead = f'admission webhook "{name}" denied the request'
    words = f"{lead}: {said or reason}" if said or reason else f"{lead} without explanation"
    return status.ApiError(code, str(reason), words, details=found.get("details"))


def _operations(webhook: Webhook, response: Obj) -> list[Any]:
    patch = response.get("patch")
    if not patch:
        return []
    lead = "received undecodable patch in webhook response"
    try:
        operations = json_value(base64.b64decode(patch, validate=True))
    except (binascii.Error, TypeError, ValueError) as error:
        raise WebhookError(webhook.name, f"{lead}: {error}") from None
    if not isinstance(operations, list):
        raise WebhookError(webhook.name, f"{lead}: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    return operations

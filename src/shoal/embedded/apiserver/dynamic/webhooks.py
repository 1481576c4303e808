"""Calls the webhooks of one write: mutating ones one after the other, validating ones concurrently."""

from __future__ import annotations

import asyncio
import logging

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.plugin import forbid
from shoal.embedded.apiserver.admission_expressions import Allows, authorizer_of
from shoal.embedded.apiserver.admission_request import request_of
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.dynamic.admission_index import AdmissionIndex
from shoal.embedded.apiserver.dynamic.conditions import ConditionsError
from shoal.embedded.apiserver.dynamic.operations import PatchFault, applied
from shoal.embedded.apiserver.dynamic.reinvocation import MutationRound
from shoal.embedded.apiserver.dynamic.review import Reviewing, WebhookError, WebhookRequest
from shoal.embedded.apiserver.dynamic.rules import Matcher
from shoal.embedded.apiserver.dynamic.versions import Versions, restored
from shoal.embedded.apiserver.dynamic.webhook import Webhook
from shoal.embedded.apiserver.resource import Resource

_log = logging.getLogger("shoal.cluster")


class Webhooks:
    def __init__(self, matcher: Matcher, versions: Versions, reviewing: Reviewing, allows: Allows) -> None:
        self.mutating: AdmissionIndex[Webhook] = AdmissionIndex(matcher)
        self.validating: AdmissionIndex[Webhook] = AdmissionIndex(matcher)
        self._matcher = matcher
        self._versions = versions
        self._reviewing = reviewing
        self._allows = allows

    async def mutate(self, admission: AdmissionAttributes, turn: MutationRound) -> None:
        turn.begin(admission.obj)
        for webhook in self.mutating.of(admission.call, admission.operation):
            asked = await self._asked(webhook, admission)
            if asked is None or not turn.includes(webhook.key):
                continue
            try:
                changed = await self._change(asked)
            except WebhookError as error:
                if not webhook.is_ignored:
                    raise status.internal(str(error)) from None
                _log.warning("%s (ignored, as its failure policy says)", error)
                changed = False
            turn.done(webhook.key, changed=changed, again=webhook.is_reinvoked)
        turn.end(admission.obj)

    async def validate(self, admission: AdmissionAttributes) -> None:
        configured = self.validating.of(admission.call, admission.operation)
        relevant = [asked for one in configured if (asked := await self._asked(one, admission)) is not None]
        if len(relevant) == 1:
            await self._judge(relevant[0])
            return
        # All are asked to the end, so that none is left behind when the first says no.
        found = await asyncio.gather(*map(self._judge, relevant), return_exceptions=True)
        for one in found:
            if one is not None:
                raise one

    async def _asked(self, webhook: Webhook, admission: AdmissionAttributes) -> WebhookRequest | None:
        """What to ask a webhook; None if the write is not its concern."""
        resource = self._matcher.resource_for(webhook.rules, webhook.match_policy, admission)
        if resource is None or not self._matcher.is_selected(webhook.selecting, admission):
            return None
        call = admission.call
        obj = await self._versions.to(resource, admission.obj, call)
        old = await self._versions.to(resource, admission.old, call)
        asked = WebhookRequest(webhook, admission, resource, obj, old)
        return asked if not webhook.conditions.expressions or self._meets(asked) else None

    def _meets(self, asked: WebhookRequest) -> bool:
        admission = asked.admission
        scope = {
            "object": asked.obj,
            "oldObject": asked.old,
            "request": request_of(admission, asked.resource),
            "authorizer": authorizer_of(self._allows, admission),
        }
        try:
            return asked.webhook.conditions.hold(scope)
        except ConditionsError as error:
            if asked.webhook.is_ignored:
                return False
            raise forbid(admission, str(error)) from None

    async def _change(self, asked: WebhookRequest) -> bool:
        """Call the webhook, and patch the object as it answers; whether that changed anything."""
        operations = await self._reviewing.ask(asked, mutates=True)
        if not operations:
            return False
        admission, resource = asked.admission, asked.resource
        if asked.obj is None:
            name = asked.webhook.name
            words = "attempted to modify the object, which is not supported for this operation"
            raise status.internal(f'admission webhook "{name}" {words}')
        try:
            patched = applied(asked.obj, operations)
        except PatchFault as fault:
            raise status.internal(str(fault)) from None
        after = restored(patched, resource, admission.call)
        changed = after != asked.obj
        admission.obj = await self._back(after, resource, admission)
        return changed

    async def _back(
        self, obj: dict[str, object], resource: Resource, admission: AdmissionAttributes
    ) -> dict[str, object]:
        if resource is admission.call.resource:
            return obj
        return await self._versions.to(admission.call.resource, obj, admission.call) or obj

    async def _judge(self, asked: WebhookRequest) -> None:
        try:
            await self._reviewing.ask(asked, mutates=False)
        except WebhookError as error:
            if not asked.webhook.is_ignored:
                raise status.internal(str(error)) from None
            _log.warning("%s (ignored, as its failure policy says)", error)

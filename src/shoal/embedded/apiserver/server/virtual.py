"""Handles objects that are posted and not stored: reviews and token requests, bindings and evictions.

One table says so, by group, plural and door. A custom resource may bear the plural of any of them (`bindings` does in
the wild) and is none of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest import subresources
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.evicting import evict as evict_pod
from shoal.embedded.apiserver.security import reviews
from shoal.embedded.apiserver.security.authenticate import Authenticator
from shoal.embedded.apiserver.security.authorize import Authorizer
from shoal.embedded.apiserver.security.service_accounts import TokenSigner
from shoal.embedded.apiserver.security.token_request import token_request

Virtual = Callable[[Call, Obj], Awaitable[Obj]]
"""What a post comes to: the answer to what was posted."""


def virtual_resources(
    context: ServerContext,
    authenticator: Authenticator,
    authorizer: Authorizer,
    signer: TokenSigner,
    restriction: AdmissionPlugin | None = None,
) -> Mapping[tuple[str, str, str], Virtual]:
    """By group, plural and subresource. `restriction` is what nodes are asked by, of what is done to other objects."""

    def restricted(act: Virtual) -> Virtual:
        async def checked(call: Call, obj: Obj) -> Obj:
            if restriction is not None:
                restriction.mutate(AdmissionAttributes("CREATE", call, call.name, obj, None))
            return await act(call, obj)

        return checked

    async def token_review(_: Call, obj: Obj) -> Obj:
        return reviews.token_review(obj, authenticator, int(context.clock.seconds()))

    async def self_subject(call: Call, obj: Obj) -> Obj:
        return reviews.self_subject_review(obj, call.actor)

    async def subject_access(_: Call, obj: Obj) -> Obj:
        return reviews.subject_access_review(obj, authorizer)

    async def local_access(call: Call, obj: Obj) -> Obj:
        return reviews.local_subject_access_review(obj, call.namespace, authorizer)

    async def self_access(call: Call, obj: Obj) -> Obj:
        return reviews.self_subject_access_review(obj, call.actor, authorizer)

    async def self_rules(call: Call, obj: Obj) -> Obj:
        return reviews.self_subject_rules_review(obj, call.actor, authorizer)

    async def token(call: Call, obj: Obj) -> Obj:
        reader: Any = context.state.reader
        account = reader.get("", "serviceaccounts", call.namespace, call.name)
        if account is None:
            raise status.not_found("serviceaccounts", "", call.name)
        return token_request(obj, account, signer, reader, int(context.clock.seconds()))

    async def bind(call: Call, obj: Obj) -> Obj:
        return await subresources.bind(context, call, obj)

    async def evict(call: Call, obj: Obj) -> Obj:
        return await evict_pod(context, call, obj)

    return {
        ("authentication.k8s.io", "tokenreviews", ""): token_review,
        ("authentication.k8s.io", "selfsubjectreviews", ""): self_subject,
        ("authorization.k8s.io", "subjectaccessreviews", ""): subject_access,
        ("authorization.k8s.io", "localsubjectaccessreviews", ""): local_access,
        ("authorization.k8s.io", "selfsubjectaccessreviews", ""): self_access,
        ("authorization.k8s.io", "selfsubjectrulesreviews", ""): self_rules,
        ("", "serviceaccounts", "token"): restricted(token),
        ("", "bindings", ""): bind,
        ("", "pods", "binding"): restricted(bind),
        ("", "pods", "eviction"): restricted(evict),
    }

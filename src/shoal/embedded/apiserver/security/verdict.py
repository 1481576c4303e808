"""Decisions of authorizers, and the message of a refusal."""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import ANONYMOUS, Actor
from shoal.embedded.apiserver.field_errors import shown
from shoal.embedded.apiserver.request_info import RequestInfo


class AccessDecision(msgspec.Struct, frozen=True):
    allowed: bool
    reason: str = ""


def refusal(actor: Actor, asked: RequestInfo, verdict: AccessDecision) -> status.ApiError:
    """401 for requests without credentials, 403 for all others."""
    if actor == ANONYMOUS:
        return status.unauthorized()
    return forbidden(actor, asked, verdict.reason)


def forbidden(actor: Actor, asked: RequestInfo, reason: str = "") -> status.ApiError:
    words = _cannot(actor, asked)
    if reason:
        words = f"{words}: {reason}"
    return status.forbidden(asked.resource, asked.group, asked.name, words)


def _cannot(actor: Actor, asked: RequestInfo) -> str:
    start = f"User {shown(actor.name)} cannot {asked.verb}"
    if not asked.is_resource:
        return f"{start} path {shown(asked.path)}"
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    start = f'{start} resource "{resource}" in API group "{asked.group}"'
    return f'{start} in the namespace "{asked.namespace}"' if asked.namespace else f"{start} at the cluster scope"

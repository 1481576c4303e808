"""Requires the right to create for updates and patches that create the object.

The door asked about the verb of the request, `update` or `patch`; that something is to be created is known only here.
It is asked before anything is done. Kubernetes asks after defaults and validation, so that who may not create learns
there first what is wrong with the object.
"""

from __future__ import annotations

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.rest.context import ServerContext


def check_may_create(context: ServerContext, call: Call) -> None:
    """Raises Forbidden, in the words of this refusal alone: only the authorizer's reason, which may be empty."""
    resource = call.resource
    asked = RequestInfo(
        "create", resource.group, resource.version, resource.plural, call.subresource, call.namespace, call.name
    )
    verdict = context.authorizer.allows(call.actor, asked)
    if not verdict.allowed:
        raise status.forbidden(resource.plural, resource.group, call.name, verdict.reason)

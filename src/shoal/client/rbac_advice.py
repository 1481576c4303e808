"""Derives the missing RBAC rule from a refusal, and the commands that grant it to the user."""

from __future__ import annotations

import json

from shoal.client.refusals import ForbiddenError

_SERVICE_ACCOUNT = "system:serviceaccount:"


def rbac_advice(error: ForbiddenError) -> str:
    """Lines to show below the refusal; empty if RBAC was not its cause."""
    if not error.verb:
        return ""
    name = f"shoal-{error.verb}-{(error.resource or error.path.strip('/')).replace('/', '-').replace('*', 'all')}"
    role = "role" if error.namespace else "clusterrole"
    inside = f" -n {error.namespace}" if error.namespace else ""
    return "\n".join(
        (
            "the missing rule:",
            *(f"  {line}" for line in _rule(error)),
            "to grant it:",
            f"  kubectl create {role} {name} --verb={error.verb} {_what(error)}{inside}",
            f"  kubectl create {role}binding {name} --{role}={name} {_whom(error.user)}{inside}",
        )
    )


def _rule(error: ForbiddenError) -> tuple[str, ...]:
    verbs = f"verbs: {json.dumps([error.verb])}"
    if error.path:
        return (f"- nonResourceURLs: {json.dumps([error.path])}", f"  {verbs}")
    return (f"- apiGroups: {json.dumps([error.group])}", f"  resources: {json.dumps([error.resource])}", f"  {verbs}")


def _what(error: ForbiddenError) -> str:
    if error.path:
        return f"--non-resource-url={error.path}"
    plural, slash, subresource = error.resource.partition("/")
    return f"--resource={plural}{'.' if error.group else ''}{error.group}{slash}{subresource}"


def _whom(user: str) -> str:
    if user.startswith(_SERVICE_ACCOUNT):
        return f"--serviceaccount={user.removeprefix(_SERVICE_ACCOUNT)}"
    return f"--user={user}"

"""Authorizes approval and signing of certificate requests by the verb on the named signer.

The right to write to `approval` or `status` of a request is not enough, because a certificate of one signer can say
anything about its holder. As in Kubernetes a right to `DOMAIN/*` holds for all signers of a domain, and what counts is
the signer of the request as it is stored.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.admission.plugin import forbid
from shoal.embedded.apiserver.calls import Actor, AdmissionAttributes
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.authorize import Authorizer

Obj = dict[str, Any]
_GROUP = "certificates.k8s.io"
_REQUESTS = (_GROUP, "certificatesigningrequests")
_VERBS = {"approval": "approve", "status": "sign"}
_SIGNED = ("certificate", "conditions")


class SignerRights:
    """To be asked about every update of a request for a certificate."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def validate(self, admission: AdmissionAttributes) -> None:
        call = admission.call
        verb = _VERBS.get(call.subresource, "")
        if call.resource.home != _REQUESTS or not verb or admission.operation != "UPDATE":
            return
        old = admission.old or {}
        if verb == "sign" and _signed(old) == _signed(admission.obj or {}):
            return
        signer = (old.get("spec") or {}).get("signerName") or ""
        if not self._may(call.actor, verb, signer):
            raise forbid(admission, f'user not permitted to {verb} requests with signerName "{signer}"')

    def _may(self, actor: Actor, verb: str, signer: str) -> bool:
        names = (signer, f"{signer.partition('/')[0]}/*")
        asked = (RequestInfo(verb, _GROUP, "*", "signers", name=name) for name in names)
        return any(self._authorizer.allows(actor, one).allowed for one in asked)


def _signed(request: Obj) -> list[Any]:
    status = request.get("status") or {}
    return [status.get(key) or None for key in _SIGNED]

"""Signs approved requests of Kubernetes' own signers; requests that they must not sign fail with a reason."""

from __future__ import annotations

from base64 import b64encode
from datetime import timedelta

from shoal.client.context import Context, Controller
from shoal.client.item import Key
from shoal.client.kind import SIGNING_REQUESTS
from shoal.client.loop import Loop
from shoal.embedded.controllers.certificates.authority import Sign
from shoal.embedded.controllers.certificates.requests import (
    SIGNERS,
    asked,
    has_condition,
    pem_of,
    signer_fault,
    with_condition,
)

_LONGEST = timedelta(days=365)


def csr_signer(context: Context, sign: Sign) -> Controller:
    requests = context.informers.of(SIGNING_REQUESTS)

    async def reconcile(key: Key) -> None:
        item = requests.get(*key)
        if item is None:
            return
        request = item.obj()
        spec, status = request["spec"], request.get("status") or {}
        is_due = has_condition(request, "Approved") and not has_condition(request, "Denied", "Failed")
        if spec["signerName"] not in SIGNERS or not is_due or status.get("certificate"):
            return
        pem, usages = pem_of(request), spec.get("usages") or ()
        try:
            fault = signer_fault(spec["signerName"], asked(pem), usages)
        except ValueError as error:
            fault = f"unable to parse csr {item.name!r}: {error}"
        if fault:
            request = with_condition(request, "Failed", "SignerValidationFailure", fault, context.clock.text())
        else:
            seconds = spec.get("expirationSeconds")
            lifetime = min(timedelta(seconds=seconds), _LONGEST) if seconds is not None else _LONGEST
            certificate = sign(pem, usages, lifetime)
            request["status"]["certificate"] = b64encode(certificate).decode()
        await context.api.update(SIGNING_REQUESTS, request, "status")

    loop = Loop(context, reconcile)
    loop.follow(SIGNING_REQUESTS)
    return loop

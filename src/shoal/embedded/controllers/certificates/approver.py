"""Approves the requests of kubelets for their own client certificates, if they have the permission."""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.client.item import Key, Obj
from shoal.client.kind import SIGNING_REQUESTS, Kind
from shoal.client.loop import Loop
from shoal.embedded.controllers.certificates.requests import KUBELET_CLIENT, asked, has_condition, pem_of, signer_fault
from shoal.embedded.controllers.certificates.requests import with_condition as reported

_REVIEWS = Kind("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", is_namespaced=False)
_OWN = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
_FIRST = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


def csr_approver(context: Context) -> Controller:
    requests = context.informers.of(SIGNING_REQUESTS)

    async def reconcile(key: Key) -> None:
        item = requests.get(*key)
        if item is None:
            return
        request = item.obj()
        spec = request["spec"]
        is_open = not has_condition(request, "Approved", "Denied") and not request["status"].get("certificate")
        is_known = bool(spec.get("username") or spec.get("groups"))
        if spec["signerName"] != KUBELET_CLIENT or not is_open or not is_known:
            return
        try:
            wanted = asked(pem_of(request))
        except ValueError:
            return
        if signer_fault(KUBELET_CLIENT, wanted, spec.get("usages") or ()):
            return
        is_own = spec.get("username") == wanted.common_name
        for subresource, words in (_OWN, _FIRST) if is_own else (_FIRST,):
            if await _may(spec, subresource):
                request = reported(request, "Approved", "AutoApproved", words, context.clock.text())
                await context.api.update(SIGNING_REQUESTS, request, "approval")
                return

    async def _may(spec: Obj, subresource: str) -> bool:
        attributes = {"group": "certificates.k8s.io", "version": "*", "resource": "certificatesigningrequests"}
        attributes |= {"verb": "create", "subresource": subresource}
        asked_for: Obj = {"user": spec.get("username", ""), "groups": spec.get("groups") or []}
        asked_for |= {"uid": spec.get("uid", ""), "extra": spec.get("extra") or {}, "resourceAttributes": attributes}
        answer = await context.api.post(_REVIEWS, "", "", "", {"spec": asked_for})
        return bool(answer["status"]["allowed"])

    loop = Loop(context, reconcile)
    loop.follow(SIGNING_REQUESTS)
    return loop

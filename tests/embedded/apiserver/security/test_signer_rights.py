"""Approving and signing a request for a certificate takes a right to its signer."""

from __future__ import annotations

from typing import Any

import pytest

from build.rbac import actor, cluster_binding, cluster_role
from build.readers import FixedReader
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.security.rbac import Rbac
from shoal.embedded.apiserver.security.signer_rights import SignerRights
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
REQUESTS = Resource("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False)
CLIENT = "kubernetes.io/kube-apiserver-client"


def update(subresource: str, new: Obj, signer: str = CLIENT) -> AdmissionAttributes:
    old: Obj = {"metadata": {"name": "ask"}, "spec": {"signerName": signer}, "status": {}}
    call = Call("patch", REQUESTS, actor("bob"), "", "ask", subresource)
    # The signer in the request that is sent says nothing.
    return AdmissionAttributes("UPDATE", call, "ask", old | {"spec": {"signerName": "own.example/any"}} | new, old)


def rights(*lines: str) -> SignerRights:
    return SignerRights(Rbac(FixedReader(cluster_role("r", *lines), cluster_binding("r", "User bob"))))


def is_permitted(check: SignerRights, admission: AdmissionAttributes) -> bool:
    try:
        check.validate(admission)
    except ApiError:
        return False
    return True


APPROVED = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}
SIGNED = {"status": {"certificate": "eA=="}}


@pytest.mark.parametrize(
    ("subresource", "new", "verb"),
    [("approval", APPROVED, "approve"), ("status", SIGNED, "sign"), ("status", APPROVED, "sign")],
)
def test_who_holds_no_right_to_the_signer_is_refused(subresource: str, new: Obj, verb: str) -> None:
    others = ("approve,sign signers @certificates.k8s.io =own.example/any,kubernetes.io/other,other.io/*",)
    with pytest.raises(ApiError) as refused:
        rights(*others).validate(update(subresource, new))
    assert refused.value.code == 403
    assert refused.value.message == (
        'certificatesigningrequests.certificates.k8s.io "ask" is forbidden: user not permitted to '
        f'{verb} requests with signerName "{CLIENT}"'
    )


@pytest.mark.parametrize("name", [CLIENT, "kubernetes.io/*"])
@pytest.mark.parametrize(
    ("subresource", "new", "verb"), [("approval", APPROVED, "approve"), ("status", SIGNED, "sign")]
)
def test_a_right_to_the_signer_or_to_its_domain_is_enough(subresource: str, new: Obj, verb: str, name: str) -> None:
    asked = update(subresource, new)
    assert is_permitted(rights(f"{verb} signers @certificates.k8s.io ={name}"), asked)
    assert not is_permitted(rights(f"get signers @certificates.k8s.io ={name}"), asked)


def test_a_status_that_says_nothing_new_of_certificate_and_conditions_needs_no_right_to_the_signer() -> None:
    check = rights("update certificatesigningrequests/status @certificates.k8s.io")
    assert is_permitted(check, update("status", {}))
    assert not is_permitted(check, update("status", SIGNED))

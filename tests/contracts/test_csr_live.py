"""Requests for certificates: nothing before approval, then signed by the cluster for as long as was asked."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from build.cluster_api import Api, Obj
from build.live_waits import conditions, until

pytestmark = pytest.mark.needs("controllers")
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"


async def make(api: Api, signer: str, common: str, *organizations: str, **spec: Any) -> Obj:
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    encoded = b64encode(pem.public_bytes(Encoding.PEM)).decode()
    whole = {"request": encoded, "signerName": signer, "usages": ["digital signature", "client auth"], **spec}
    metadata = {"name": f"test-{uuid4().hex[:10]}"}
    body = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": metadata}
    return (await api.post(REQUESTS, {**body, "spec": whole})).ok(201)


async def decide(api: Api, asked: Obj, verdict: str) -> str:
    said = {"type": verdict, "status": "True", "reason": "TestSays", "message": "as the test says"}
    path = f"{REQUESTS}/{asked['metadata']['name']}"
    (await api.put(f"{path}/approval", {**asked, "status": {"conditions": [said]}})).ok()
    return path


async def test_an_approved_request_is_signed(api: Api) -> None:
    asked = await make(api, CLIENT, "jane", "devs", expirationSeconds=3600)
    assert "certificate" not in asked.get("status", {})
    path = await decide(api, asked, "Approved")
    signed = await until(api, path, lambda one: one.get("status", {}).get("certificate"))
    issued = x509.load_pem_x509_certificates(b64decode(signed["status"]["certificate"]))[0]
    assert issued.subject.rfc4514_string() == "CN=jane,O=devs"
    assert 0 < (issued.not_valid_after_utc - issued.not_valid_before_utc).total_seconds() <= 2 * 3600
    await api.delete(path)


async def test_a_request_that_its_signer_must_not_sign_fails(api: Api) -> None:
    asked = await make(api, "kubernetes.io/kube-apiserver-client-kubelet", "system:node:n", "devs")
    path = await decide(api, asked, "Approved")
    failed = await until(api, path, lambda one: "Failed" in conditions(one))
    assert conditions(failed)["Failed"][:2] == ("True", "SignerValidationFailure")
    assert "certificate" not in failed["status"]
    await api.delete(path)


async def test_a_denied_request_is_never_signed_and_cannot_be_approved_any_more(api: Api) -> None:
    asked = await make(api, CLIENT, "jane")
    path = await decide(api, asked, "Denied")
    denied = (await api.get(path)).ok()
    approved = [*denied["status"]["conditions"], {"type": "Approved", "status": "True", "reason": "R", "message": "m"}]
    answer = await api.put(f"{path}/approval", {**denied, "status": {"conditions": approved}})
    assert answer.code == 422
    await api.delete(path)

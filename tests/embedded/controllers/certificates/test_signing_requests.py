"""Requests for certificates: approved for kubelets, signed when approved, refused for good reasons, cleared away."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from build.signing_requests import PATCHES, unreadable_request
from build.small_clusters import START_S, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.certificates import new_authority
from shoal.client.context import Context, Controller
from shoal.client.item import Obj
from shoal.client.kind import SIGNING_REQUESTS
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.controllers.certificates.approver import csr_approver
from shoal.embedded.controllers.certificates.authority import authority_signer
from shoal.embedded.controllers.certificates.cleaner import csr_cleaner
from shoal.embedded.controllers.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    CertificateRequest,
    signer_fault,
)
from shoal.embedded.controllers.certificates.signer import csr_signer

_TODAY = datetime.fromtimestamp(START_S, UTC) - timedelta(days=30)
"""The clock of the cluster is a month ahead."""
_ROOT = new_authority(_TODAY)
_KEYS = ["digital signature", "key encipherment"]


def _signer(context: Context) -> Controller:
    return csr_signer(context, authority_signer(_ROOT.certificate, _ROOT.key, lambda: _TODAY))


def _request(signer: str, common: str | tuple[str, ...], *organizations: str, **spec: Any) -> Obj:
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    names = (common,) if isinstance(common, str) else common
    subject = x509.Name([*parts, *(x509.NameAttribute(NameOID.COMMON_NAME, one) for one in names)])
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    encoded = b64encode(pem.public_bytes(Encoding.PEM)).decode()
    spec = {"request": encoded, "signerName": signer, "usages": [*_KEYS, "client auth"], **spec}
    return {"metadata": {"name": "ask"}, "spec": spec}


async def _approve(cluster: SmallCluster) -> None:
    request = await cluster.get(SIGNING_REQUESTS, "ask")
    approved = {"type": "Approved", "status": "True", "reason": "Fine", "message": "fine"}
    request["status"] = {"conditions": [approved]}
    await cluster.api.update(SIGNING_REQUESTS, request, "approval")


@virtual
async def test_an_approved_request_is_signed_for_as_long_as_it_asks(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [_signer]) as cluster:
        await cluster.create(SIGNING_REQUESTS, _request(CLIENT, "jane", "devs", expirationSeconds=3600))
        await cluster.pass_time(2)
        assert "certificate" not in (await cluster.get(SIGNING_REQUESTS, "ask"))["status"]
        await _approve(cluster)
        await cluster.pass_time(2)
        issued = b64decode((await cluster.get(SIGNING_REQUESTS, "ask"))["status"]["certificate"])
        found = x509.load_pem_x509_certificate(issued)
        found.verify_directly_issued_by(_ROOT.parsed)
        assert found.subject.rfc4514_string() == "CN=jane,O=devs"
        assert found.not_valid_before_utc == _TODAY - timedelta(minutes=5)
        assert found.not_valid_after_utc - found.not_valid_before_utc == timedelta(hours=1)


@virtual
async def test_a_request_that_its_signer_must_not_sign_fails(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [_signer]) as cluster:
        await cluster.create(SIGNING_REQUESTS, _request(KUBELET_CLIENT, "system:node:n", "devs"))
        await _approve(cluster)
        await cluster.pass_time(2)
        status = (await cluster.get(SIGNING_REQUESTS, "ask"))["status"]
        (failed,) = [one for one in status["conditions"] if one["type"] == "Failed"]
        assert (failed["reason"], failed["message"]) == (
            "SignerValidationFailure",
            "subject organization is not system:nodes",
        )
        assert "certificate" not in status


@virtual
async def test_a_kubelet_that_may_is_approved_and_no_other_signer_is(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [csr_approver]) as cluster:
        jane = InsideApi(cluster.plane, Actor("jane", ("system:masters",)), "test")
        who = {"username": "jane", "groups": ["system:masters"]}
        await jane.create(SIGNING_REQUESTS, _request(KUBELET_CLIENT, "system:node:n", "system:nodes", **who))
        await cluster.pass_time(2)
        (approved,) = (await cluster.get(SIGNING_REQUESTS, "ask"))["status"]["conditions"]
        assert approved["reason"] == "AutoApproved"
        assert approved["message"] == "Auto approving kubelet client certificate after SubjectAccessReview."
        other = _request(CLIENT, "system:node:n", "system:nodes")
        other["metadata"]["name"] = "other"
        await cluster.create(SIGNING_REQUESTS, other)
        await cluster.pass_time(2)
        assert not (await cluster.get(SIGNING_REQUESTS, "other"))["status"]


@virtual
async def test_a_request_for_a_node_with_two_common_names_is_neither_approved_nor_signed(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [csr_approver, _signer]) as cluster:
        node = InsideApi(cluster.plane, Actor("system:node:n", ("system:masters",)), "test")
        for number, names in enumerate([("system:node:n", "admin"), ("admin", "system:node:n")]):
            await node.create(
                SIGNING_REQUESTS,
                _request(KUBELET_CLIENT, names, "system:nodes") | {"metadata": {"name": f"ask{number}"}},
            )
        await cluster.pass_time(2)
        for name in ("ask0", "ask1"):
            request = await cluster.get(SIGNING_REQUESTS, name)
            assert not request["status"]
            request["status"] = {"conditions": [{"type": "Approved", "status": "True"}]}
            await cluster.api.update(SIGNING_REQUESTS, request, "approval")
        await cluster.pass_time(2)
        for name in ("ask0", "ask1"):
            status = (await cluster.get(SIGNING_REQUESTS, name))["status"]
            assert "certificate" not in status
            assert status["conditions"][-1]["message"] == "subject has more than one common name"


@virtual
@pytest.mark.parametrize("which", [one for one in PATCHES if one != "a version that does not exist"])
async def test_a_request_whose_names_cannot_be_read_is_not_approved_and_fails_at_its_signer(
    tmp_path: Path, which: str
) -> None:
    async with small_cluster(tmp_path, [csr_approver, _signer]) as cluster:
        node = InsideApi(cluster.plane, Actor("system:node:n", ("system:masters",)), "test")
        request = _request(KUBELET_CLIENT, "n", request=unreadable_request(which))
        await node.create(SIGNING_REQUESTS, request)
        await cluster.pass_time(2)
        assert not (await cluster.get(SIGNING_REQUESTS, "ask"))["status"]
        await _approve(cluster)
        await cluster.pass_time(2)
        status = (await cluster.get(SIGNING_REQUESTS, "ask"))["status"]
        assert "certificate" not in status
        (failed,) = [one for one in status["conditions"] if one["type"] == "Failed"]
        assert failed["reason"] == "SignerValidationFailure"
        assert failed["message"].startswith("unable to parse csr 'ask': ")


@virtual
async def test_requests_are_cleared_away_when_nobody_needs_them(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [csr_cleaner]) as cluster:
        await cluster.create(SIGNING_REQUESTS, _request(CLIENT, "jane"))
        await _approve(cluster)
        other = _request(CLIENT, "joe")
        other["metadata"]["name"] = "open"
        await cluster.create(SIGNING_REQUESTS, other)
        await cluster.pass_time(3500)
        assert len(await cluster.all(SIGNING_REQUESTS)) == 2
        await cluster.pass_time(200)
        assert [one["metadata"]["name"] for one in await cluster.all(SIGNING_REQUESTS)] == ["open"]
        await cluster.pass_time(24 * 3600)
        assert not await cluster.all(SIGNING_REQUESTS)


_NODE = ("system:node:n", ("system:nodes",))


@pytest.mark.parametrize(
    ("signer", "wanted", "purpose", "fault"),
    [
        pytest.param(CLIENT, CertificateRequest("jane", ()), "client auth", "", id="anybody may be a client"),
        pytest.param(KUBELET_CLIENT, CertificateRequest(*_NODE), "client auth", "", id="a kubelet as client"),
        pytest.param(
            KUBELET_CLIENT,
            CertificateRequest("n", ("system:nodes",)),
            "client auth",
            "subject common name does not begin with system:node:",
            id="a kubelet under another name",
        ),
        pytest.param(
            KUBELET_CLIENT,
            CertificateRequest(*_NODE, dns=("n",)),
            "client auth",
            "DNS subjectAltNames are not allowed",
            id="a client with host names",
        ),
        pytest.param(
            KUBELET_SERVING, CertificateRequest(*_NODE, ips=("10.0.0.1",)), "server auth", "", id="a kubelet as server"
        ),
        pytest.param(
            KUBELET_SERVING,
            CertificateRequest(*_NODE),
            "server auth",
            "DNS or IP subjectAltName is required",
            id="a server without an address",
        ),
    ],
)
def test_each_signer_has_its_rules(signer: str, wanted: CertificateRequest, purpose: str, fault: str) -> None:
    assert signer_fault(signer, wanted, [*_KEYS, purpose]) == fault

"""A request for a certificate that cannot be read is its sender's fault, and no failure of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.in_process import in_process
from build.signing_requests import PATCHES, unreadable_request

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


@pytest.mark.parametrize("which", PATCHES)
@pytest.mark.parametrize("signer", ["kubernetes.io/kube-apiserver-client", "example.com/own"])
async def test_a_request_that_cannot_be_read_is_refused_or_kept_and_never_a_failure(
    tmp_path: Path, which: str, signer: str
) -> None:
    spec = {"request": unreadable_request(which), "signerName": signer, "usages": ["client auth"]}
    async with in_process(tmp_path) as door:
        answer = await door.ask("POST", REQUESTS, {"metadata": {"name": "r"}, "spec": spec})
        has_bad_subject = "common name" in which
        if signer.startswith("kubernetes.io") and has_bad_subject:
            assert answer.code == 403
            assert "failed to parse CSR: " in answer.body["message"]
        else:
            assert answer.code == (422 if "version" in which else 201)

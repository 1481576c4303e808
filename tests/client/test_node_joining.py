"""What both sides of joining agree on: the hash of the authority, the paths, and the version of the messages."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shoal.client import certificates
from shoal.client.kubelet.node_joining import (
    CERTIFICATE_LIFE,
    PROTOCOL,
    authority_hash,
    certificate_path,
    connection_path,
    hash_fault,
    is_authority,
    is_of_joining,
    node_in,
    protocol_fault,
    renewal_at,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.external("openssl")
def test_the_hash_is_that_of_the_public_key_as_openssl_computes_it(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(certificates.new_authority(NOW).certificate)
    key = subprocess.run(["openssl", "x509", "-pubkey", "-noout", "-in", file], capture_output=True, check=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=key, capture_output=True, check=True)
    found = subprocess.run(
        ["openssl", "dgst", "-sha256"], input=der.stdout, capture_output=True, check=True, text=False
    )

    assert authority_hash(file.read_bytes()) == f"sha256:{found.stdout.decode().split()[-1]}"


def test_only_the_same_key_has_the_hash() -> None:
    first, second = (certificates.new_authority(NOW).certificate for _ in range(2))
    wanted = authority_hash(first)

    assert hash_fault(wanted) == ""
    assert [is_authority(one, wanted) for one in (first, second, b"no certificate", b"")] == [True, False, False, False]


@pytest.mark.parametrize(
    "text", ["", "sha256:", "0" * 64, f"sha256:{'G' * 64}", f"sha1:{'0' * 64}", f"sha256:{'0' * 63}"]
)
def test_other_texts_are_no_hash(text: str) -> None:
    assert "has the form sha256:" in hash_fault(text)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (certificate_path("n1"), ("n1", "certificate")),
        (connection_path("n1.example"), ("n1.example", "connection")),
        ("/shoal/join/nodes/n1", ("", "")),
        ("/shoal/join/nodes//connection", ("", "")),
        ("/shoal/join/nodes/../connection", ("", "")),
        ("/shoal/join/nodes/N1/connection", ("", "")),
        ("/shoal/joining/nodes/n1/connection", ("", "")),
        ("/api/v1/nodes/n1", ("", "")),
    ],
)
def test_a_path_names_a_node_only_in_its_exact_form(path: str, found: tuple[str, str]) -> None:
    assert node_in(path) == found


def test_paths_that_only_begin_alike_are_not_of_joining() -> None:
    assert [is_of_joining(one) for one in ("/shoal/join", "/shoal/join/x", "/shoal/joins", "/shoal")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(("protocol", "word"), [(PROTOCOL - 1, "older"), (PROTOCOL + 1, "newer")])
def test_another_protocol_is_a_message_with_both_versions(protocol: int, word: str) -> None:
    fault = protocol_fault(protocol, "9.1", "9.0")

    assert fault.startswith(f"the machine has a {word} node protocol ({protocol}, Shoal 9.1) than the server")
    assert "Shoal 9.0" in fault
    assert protocol_fault(PROTOCOL, "9.1", "9.0") == ""


def test_a_certificate_is_renewed_after_two_thirds_of_its_life() -> None:
    authority = certificates.new_authority(NOW)
    request = certificates.new_request(certificates.new_key(), "anyone")
    made = certificates.client_of_request(authority, request, ("system:node:n1", ()), NOW, CERTIFICATE_LIFE)

    assert timedelta(days=59) < renewal_at(made) - NOW < timedelta(days=61)


def test_a_request_that_another_key_signed_is_refused() -> None:
    authority = certificates.new_authority(NOW)
    request = certificates.new_request(certificates.new_key(), "anyone")
    broken = bytearray(request)
    at = request.index(b"\n", 60) + 20
    broken[at] = ord("A") if broken[at] != ord("A") else ord("B")

    with pytest.raises(ValueError, match=r".*"):
        certificates.client_of_request(authority, bytes(broken), ("n", ()), NOW, CERTIFICATE_LIFE)

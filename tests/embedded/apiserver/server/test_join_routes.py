"""Machines that join a whole server: who gets a certificate, for which name, and until when."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from build.in_process import InProcess, Reply, in_process
from shoal.api.subjects import common_name, organizations
from shoal.client import certificates
from shoal.client.kubelet.node_joining import (
    AUTHORITY_PATH,
    JOIN_PATH,
    PROTOCOL,
    certificate_path,
    connection_path,
    is_authority,
)
from shoal.embedded.apiserver.security.join_tokens import JoinTokens
from shoal.embedded.apiserver.security.joined_nodes import JoinedNodes

KEY = certificates.new_key()
NODE = {"Impersonate-User": "system:node:n1", "Impersonate-Group": "system:nodes"}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with in_process(tmp_path, authorization="rbac", accepts_machines=True) as opened:
        yield opened


@pytest.fixture
def token(tmp_path: Path) -> str:
    return JoinTokens(tmp_path / "keys").create(time.time(), 3600.0)


def body(node: str = "n1", key: bytes = KEY, **more: Any) -> dict[str, Any]:
    request = certificates.new_request(key, "system:node:another").decode()
    return {"node": node, "request": request, "protocol": PROTOCOL, **more}


async def joins(door: InProcess, token: str, sent: Any) -> Reply:
    return await door.ask("POST", JOIN_PATH, sent, headers={"Authorization": f"Bearer {token}"})


async def test_a_token_gets_the_certificate_of_the_node_that_the_request_names(door: InProcess, token: str) -> None:
    reply = await joins(door, token, body())

    assert reply.code == 201, reply.raw
    found = x509.load_pem_x509_certificate(reply.body["certificate"].encode())
    # The subject of the signing request says nothing.
    assert (common_name(found.subject), organizations(found.subject)) == ("system:node:n1", ("system:nodes",))
    found.verify_directly_issued_by(door.plane.authority.root.parsed)
    assert 0 < (found.not_valid_after_utc - found.not_valid_before_utc).days <= 90


async def test_the_same_machine_may_repeat_its_request_and_another_may_not(door: InProcess, token: str) -> None:
    assert (await joins(door, token, body())).code == 201

    again, other = await joins(door, token, body()), await joins(door, token, body(key=certificates.new_key()))

    assert (again.code, other.code, other.body["reason"]) == (201, 409, "AlreadyExists")


async def test_no_machine_gets_the_name_of_a_node_that_exists(door: InProcess, token: str) -> None:
    assert (await door.ask("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})).code == 201

    assert (await joins(door, token, body())).code == 409


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "the body is not a request to join"),
        (b'{"node": 1}', "the body is not a request to join"),
        (body("../n1"), "is not a name of a node"),
        (body("N1"), "is not a name of a node"),
        (body() | {"request": "x"}, "cannot be read"),
        (body(protocol=PROTOCOL + 1, version="9.0"), "install the same version of Shoal on both"),
        (body() | {"request": "x" * 20_000}, "too large"),
    ],
)
async def test_a_request_that_cannot_be_right_is_refused_with_the_cause(
    door: InProcess, token: str, sent: Any, words: str
) -> None:
    reply = await joins(door, token, sent)

    assert reply.code in (400, 413)
    assert words in reply.body["message"]
    assert door.told.lines == []


async def test_a_token_can_do_nothing_else(door: InProcess, token: str) -> None:
    by = {"Authorization": f"Bearer {token}"}

    for method, path, sent in (
        ("GET", "/api/v1/namespaces/kube-system/secrets", b""),
        ("GET", "/api/v1/nodes", b""),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}}),
        ("GET", "/apis", b""),
        ("POST", certificate_path("n1"), body()),
        ("DELETE", certificate_path("n1"), b""),
    ):
        assert (await door.ask(method, path, sent, headers=by)).code == 403, path


async def test_a_wrong_or_expired_token_is_refused(door: InProcess, token: str, tmp_path: Path) -> None:
    expired = JoinTokens(tmp_path / "keys").create(time.time() - 100, 99.0)

    assert [(await joins(door, one, body())).code for one in (f"{token[:-1]}!", f"{'a' * 6}.{'b' * 32}", expired)] == [
        401,
        401,
        401,
    ]


async def test_a_node_renews_its_own_certificate_and_no_other(door: InProcess, token: str) -> None:
    await joins(door, token, body())

    own = await door.ask("POST", certificate_path("n1"), body(key=certificates.new_key()), headers=NODE)
    wrong = await door.ask("POST", certificate_path("n1"), body("n2"), headers=NODE)
    other = await door.ask("POST", certificate_path("n2"), body("n2"), headers=NODE)

    assert (own.code, wrong.code, other.code) == (201, 400, 403)


async def test_the_certificates_of_a_removed_node_are_refused_and_its_name_is_free(
    door: InProcess, token: str, tmp_path: Path
) -> None:
    first = (await joins(door, token, body())).body["certificate"]
    removed = await door.ask("DELETE", certificate_path("n1"))
    again = await joins(door, token, body(key=certificates.new_key()))

    assert (removed.code, again.code) == (200, 201)
    assert (await door.ask("DELETE", certificate_path("n9"))).code == 404
    serial = f"{x509.load_pem_x509_certificate(first.encode()).serial_number:x}"
    assert JoinedNodes(tmp_path / "keys").is_removed(serial)


async def test_the_authority_is_for_everyone(door: InProcess) -> None:
    reply = await door.ask("GET", AUTHORITY_PATH, headers={"Authorization": "Basic x"})

    assert reply.code == 200
    assert b"PRIVATE" not in reply.raw
    assert not is_authority(reply.raw, f"sha256:{'0' * 64}")


async def test_a_connection_needs_an_upgrade_and_the_same_protocol(door: InProcess) -> None:
    path = connection_path("n1")

    plain = await door.ask("GET", f"{path}?protocol={PROTOCOL}", headers=NODE)
    old = await door.ask("GET", f"{path}?protocol=0&version=0.1", headers=NODE)

    assert (plain.code, plain.body["message"]) == (400, "Upgrade request required")
    assert "older node protocol (0, Shoal 0.1)" in old.body["message"]


async def test_a_server_that_accepts_no_machines_has_none_of_these_paths(tmp_path: Path) -> None:
    async with in_process(tmp_path, authorization="rbac") as closed:
        for method, path in (("GET", AUTHORITY_PATH), ("POST", JOIN_PATH), ("DELETE", certificate_path("n1"))):
            assert (await closed.ask(method, path)).code == 404, path

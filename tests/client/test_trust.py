"""Whom a client trusts and what it shows, against a server that speaks TLS and asks who comes."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from shoal.client.http.access import Access, ExecProgram
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.item import WatchEvent
from shoal.client.kind import NAMESPACES
from shoal.client.refusals import RefusedError
from shoal.units.errors import UserError


@pytest.fixture
def access(server_kubeconfig: Path) -> Access:
    return locate(server_kubeconfig)


async def first_name(access: Access) -> str:
    api = KubeApi(access, random.Random(1))
    try:
        return (await api.get(NAMESPACES, "", "default")).name
    finally:
        await api.close()


async def test_the_administrators_kubeconfig_opens_the_door(access: Access) -> None:
    assert await first_name(access) == "default"


async def test_an_authority_that_did_not_sign_is_named_with_the_context(access: Access) -> None:
    stranger = msgspec.structs.replace(access, authority="")
    with pytest.raises(UserError) as refused:
        await first_name(stranger)
    line = str(refused.value)
    assert line.startswith(f"{access.where}: the certificate of {access.server} is not trusted: ")
    assert "certificate-authority" in line


async def test_a_certificate_for_another_name_is_not_trusted_unless_that_name_was_meant(access: Access) -> None:
    with pytest.raises(UserError, match="is not trusted"):
        await first_name(msgspec.structs.replace(access, tls_name="elsewhere.example.com"))
    assert await first_name(msgspec.structs.replace(access, tls_name="kubernetes.default.svc")) == "default"


async def test_who_asks_for_no_safety_gets_none(access: Access) -> None:
    assert await first_name(msgspec.structs.replace(access, authority="", is_insecure=True)) == "default"


async def test_a_token_that_is_not_taken_is_refused_by_the_server(access: Access) -> None:
    nobody = msgspec.structs.replace(access, certificate=b"", key=b"", token="x.y.z", again=None)  # noqa: S106 - nobody's
    with pytest.raises(RefusedError) as refused:
        await first_name(nobody)
    assert refused.value.code == 401


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("authority", "not PEM", "the certificate authority cannot be read; it must be PEM"),
        ("certificate", b"not PEM", "the client certificate cannot be used"),
        ("key", b"not PEM", "the client certificate cannot be used"),
    ],
)
def test_pem_that_is_none_is_said_before_anything_is_sent(
    access: Access, field: str, value: object, words: str
) -> None:
    with pytest.raises(UserError) as refused:
        KubeApi(msgspec.structs.replace(access, **{field: value}), random.Random(1))
    assert str(refused.value).startswith(f"{access.where}: {words}")


@pytest.fixture
async def renewing(access: Access, tmp_path: Path) -> AsyncIterator[tuple[KubeApi, Access]]:
    """A client whose certificate, key and authority stand in files, and where they stand."""
    names = {
        "certificate_file": access.certificate,
        "key_file": access.key,
        "authority_file": access.authority.encode(),
    }
    for name, content in names.items():
        (tmp_path / name).write_bytes(content)
    found = msgspec.structs.replace(access, **{name: tmp_path / name for name in names})
    api = KubeApi(found, random.Random(1))
    yield api, found
    await api.close()


async def test_credentials_that_do_not_fit_leave_the_last_in_use(renewing: tuple[KubeApi, Access]) -> None:
    api, access = renewing
    assert access.key_file is not None
    assert (await api.get(NAMESPACES, "", "default")).name == "default"
    access.key_file.write_bytes(b"half of a k")
    api.look_again()
    assert (await api.get(NAMESPACES, "", "default")).name == "default"


async def test_a_certificate_that_was_renewed_is_shown_from_then_on(renewing: tuple[KubeApi, Access]) -> None:
    """What is refused as nobody's is asked for again with what stands in the files by now."""
    api, access = renewing
    assert access.certificate_file is not None
    assert access.key_file is not None
    certificate, key = access.certificate, access.key
    access.certificate_file.write_bytes(certificate + b"\n")
    since = (await api.list(NAMESPACES)).version
    before, after = (f"t-{uuid.uuid4().hex[:10]}" for _ in range(2))
    await api.create(NAMESPACES, {"metadata": {"name": before}})
    async with asyncio.timeout(60), aclosing(api.watch(NAMESPACES, since)) as watching:
        await told_of(watching, before)
        access.key_file.write_bytes(key + b"\n")
        api.look_again()
        await api.create(NAMESPACES, {"metadata": {"name": after}})
        # The watch that was open goes on over what it was opened with.
        await told_of(watching, after)
    for name in (before, after):
        await api.delete(NAMESPACES, "", name)


async def told_of(watching: AsyncIterator[list[WatchEvent]], name: str) -> None:
    async for batch in watching:
        if any(change.item is not None and change.item.name == name for change in batch):
            return
    raise AssertionError("the watch has ended")


async def test_a_proxy_between_passes_tls_through(access: Access) -> None:
    asked: list[bytes] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing() and (piece := await reader.read(1 << 16)):
            writer.write(piece)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b"\r\n")[0])
        host, _, port = head.split()[1].decode().rpartition(":")
        there = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pass_on(reader, there[1]), pass_on(there[0], writer))

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    assert await first_name(msgspec.structs.replace(access, proxy=f"http://127.0.0.1:{port}")) == "default"
    proxy.close()
    server = access.server.removeprefix("https://")
    assert asked == [f"CONNECT {server} HTTP/1.1".encode()]


async def test_a_program_may_show_a_certificate_for_us(access: Access, tmp_path: Path) -> None:
    if not access.certificate:
        pytest.skip("the cluster's administrator has no certificate")
    version = "client.authentication.k8s.io/v1"
    status = {"clientCertificateData": access.certificate.decode(), "clientKeyData": access.key.decode()}
    answer = tmp_path / "answer"
    answer.write_bytes(msgspec.json.encode({"kind": "ExecCredential", "apiVersion": version, "status": status}))
    program = ExecProgram("cat", version, (str(answer),), mode="Never")
    assert await first_name(msgspec.structs.replace(access, certificate=b"", key=b"", program=program)) == "default"

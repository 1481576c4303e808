"""Whom a client trusts and what it shows, against a server that speaks TLS and asks who comes."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from shoal.store.kube.access import Access
from shoal.store.kube.api import KubeApi
from shoal.store.kube.locate import locate
from shoal.store.live.kind import NAMESPACES
from shoal.store.live.refusals import RefusedError
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
    nobody = msgspec.structs.replace(access, certificate=b"", key=b"", token="x.y.z")  # noqa: S106 - nobody's
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

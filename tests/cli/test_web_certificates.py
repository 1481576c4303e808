"""The certificate of the pages of `shoal web` and `shoal run`, while its files are renewed."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shoal.cli.web import certificate_of
from shoal.client.certificates import Pair, new_authority, new_server

NOW = datetime(2026, 11, 27, tzinfo=UTC)
AUTHORITY = new_authority(NOW)
NAME = "pages.example"


class Files:
    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"

    def write(self, pair: Pair) -> None:
        self.certificate.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)

    def context(self) -> ssl.SSLContext:
        found = certificate_of((self.certificate, "--tls-cert-file"), (self.key, "--tls-private-key-file"))
        assert found is not None
        return found


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def shown(server: ssl.SSLContext, name: str | None = NAME) -> bytes:
    """The certificate that a client of this name gets, without sockets."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=name)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (asking, answering):
            step(side.do_handshake)
    found = asking.getpeercert(True)
    assert found is not None
    return found


def step(handshake: Callable[[], None]) -> None:
    try:
        handshake()
    except ssl.SSLWantReadError:
        """The other side has the next turn."""


def der(pair: Pair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


def renewed() -> Pair:
    return new_server(AUTHORITY, [NAME], NOW)


@pytest.mark.parametrize("name", [NAME, None])
def test_new_connections_get_a_renewed_certificate(files: Files, name: str | None) -> None:
    first, second = renewed(), renewed()
    files.write(first)
    context = files.context()
    assert shown(context, name) == der(first)
    files.write(second)
    assert shown(context, name) == der(second)


def test_a_certificate_is_shown_until_the_renewed_one_is_complete(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = renewed(), renewed()
    files.write(first)
    context = files.context()
    files.certificate.write_bytes(second.certificate)
    assert [shown(context) for _ in range(2)] == [der(first)] * 2
    assert [one.getMessage().partition(":")[0] for one in caplog.records] == ["the certificate cannot be renewed"]
    assert str(files.certificate) in caplog.text
    files.key.unlink()
    assert shown(context) == der(first)
    files.key.write_bytes(second.key)
    assert shown(context) == der(second)

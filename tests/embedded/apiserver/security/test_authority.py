"""The authority is made once and kept; what it issues is renewed before it ends; nobody else can read it."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from build.identities import NOW
from shoal.client import certificates
from shoal.embedded.apiserver.security.authority import open_authority
from shoal.units.errors import UserError


def test_a_second_start_finds_the_same_authority(tmp_path: Path) -> None:
    first = open_authority(tmp_path / "keys", NOW)
    assert open_authority(tmp_path / "keys", NOW + timedelta(days=30)) == first


def test_only_the_owner_may_read_keys_and_folder(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    open_authority(folder, NOW)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_certificates_are_renewed_near_their_end_and_the_authority_is_not(tmp_path: Path) -> None:
    first = open_authority(tmp_path, NOW)
    later = open_authority(tmp_path, NOW + timedelta(days=350))
    assert later.root == first.root
    assert later.signing_key == first.signing_key
    assert later.server.certificate != first.server.certificate
    assert later.admin.parsed.not_valid_after_utc > first.admin.parsed.not_valid_after_utc


def test_a_new_address_gets_a_server_certificate_that_names_it(tmp_path: Path) -> None:
    open_authority(tmp_path, NOW)
    second = open_authority(tmp_path, NOW, ("192.0.2.7", "lab.example"))
    assert certificates.hosts_of(second.server) >= {"192.0.2.7", "lab.example", "127.0.0.1", "::1", "localhost"}


def test_half_an_authority_is_refused_rather_than_replaced(tmp_path: Path) -> None:
    open_authority(tmp_path, NOW)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(UserError, match=r"ca\.key is missing") as caught:
        open_authority(tmp_path, NOW)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"not a certificate", b"\xff\x00"])
def test_a_broken_authority_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    open_authority(tmp_path, NOW)
    (tmp_path / "ca.crt").write_bytes(content)
    with pytest.raises(UserError, match="broken or has expired"):
        open_authority(tmp_path, NOW)


def test_a_broken_server_certificate_is_simply_made_again(tmp_path: Path) -> None:
    first = open_authority(tmp_path, NOW)
    (tmp_path / "server.crt").write_bytes(b"torn")
    second = open_authority(tmp_path, NOW)
    assert second.root == first.root
    assert second.server.parsed.not_valid_after_utc > NOW


def test_a_client_certificate_carries_user_and_groups_and_serves_for_nothing_else(tmp_path: Path) -> None:
    pair = open_authority(None, NOW).client("bob", ("devs", "ops"), NOW)
    subject = pair.parsed.subject.rfc4514_string()
    assert all(part in subject for part in ("CN=bob", "O=devs", "O=ops"))
    usage = pair.parsed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [purpose.dotted_string for purpose in usage] == ["1.3.6.1.5.5.7.3.2"]


def test_the_proxys_certificate_is_of_an_authority_of_its_own_and_kept(tmp_path: Path) -> None:
    first = open_authority(tmp_path, NOW)
    assert certificates.is_good(first.front_proxy, first.front_proxy_root, NOW, timedelta())
    assert not certificates.is_good(first.front_proxy, first.root, NOW, timedelta())
    assert not certificates.is_good(first.admin, first.front_proxy_root, NOW, timedelta())
    assert open_authority(tmp_path, NOW).front_proxy == first.front_proxy
    later = open_authority(tmp_path, NOW + timedelta(days=350))
    assert later.front_proxy_root == first.front_proxy_root
    assert later.front_proxy != first.front_proxy


def test_a_folder_from_before_there_was_a_proxy_gets_its_authority(tmp_path: Path) -> None:
    first = open_authority(tmp_path, NOW)
    for file in tmp_path.glob("front-proxy*"):
        file.unlink()
    second = open_authority(tmp_path, NOW)
    assert second.root == first.root
    assert second.front_proxy_root.parsed.subject.rfc4514_string() == "CN=front-proxy"


def test_the_server_speaks_tls_with_its_own_certificate_and_asks_for_a_clients() -> None:
    authority = open_authority(None, NOW)
    context = authority.server_context()
    assert context.verify_mode is ssl.CERT_OPTIONAL
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2

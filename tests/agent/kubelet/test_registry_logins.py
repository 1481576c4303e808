"""Logins of registries are read from Secrets, and used for the images of their registry only."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from shoal.agent.kubelet.cri.registry_logins import RegistryLogin, logins_in

LOGIN_OF_ME = ("me", "p")
LOGIN = RegistryLogin("r.example", *LOGIN_OF_ME)


def secret(server: str, **entry: str) -> dict[str, bytes]:
    return {".dockerconfigjson": json.dumps({"auths": {server: entry}}).encode()}


def test_a_login_is_written_in_two_ways() -> None:
    both = b64encode(b"me:pass:word").decode()

    assert [*logins_in(secret("r.example", auth=both))] == [RegistryLogin("r.example", "me", "pass:word")]
    assert [*logins_in(secret("r.example", **dict(zip(("username", "password"), LOGIN_OF_ME, strict=True))))] == [LOGIN]


def test_the_older_form_is_read() -> None:
    old = {".dockercfg": json.dumps({"https://r.example/v1/": {"username": "me", "password": "p"}}).encode()}

    assert [*logins_in(old)] == [LOGIN]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"auths": {"r": {"auth": "*"}}}', b'{"auths": 3}'])
def test_what_cannot_be_read_gives_no_login(content: bytes) -> None:
    assert [*logins_in({".dockerconfigjson": content})] == []


@pytest.mark.parametrize(
    ("server", "image", "fits"),
    [
        ("r.example", "r.example/app:1", True),
        ("r.example/team", "r.example/team/app:1", True),
        ("r.example/team", "r.example/teams/app:1", False),
        ("r.example", "r.example.org/app:1", False),
        ("index.docker.io", "app", True),
        ("r.example", "app", False),
    ],
)
def test_a_login_is_for_the_images_of_its_registry(server: str, image: str, fits: bool) -> None:
    assert RegistryLogin(server, *LOGIN_OF_ME).fits(image) is fits

"""Reads the logins of registries from the Secrets that `imagePullSecrets` names."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping

import msgspec

from shoal.agent.protos import cri_pb2 as messages
from shoal.client.kubelet.pod_status import full_image

_KEY, _OLD_KEY = ".dockerconfigjson", ".dockercfg"
_DOCKER = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})


class _RegistryEntry(msgspec.Struct):
    username: str = ""
    password: str = ""
    auth: str = ""
    identitytoken: str = ""


class _File(msgspec.Struct):
    auths: dict[str, _RegistryEntry] = {}


class RegistryLogin(msgspec.Struct, frozen=True):
    server: str
    """A host, and possibly a path below it."""
    username: str
    password: str
    token: str = ""

    def fits(self, image: str) -> bool:
        name = full_image(image)
        host = name.partition("/")[0]
        if host in _DOCKER and self.server.partition("/")[0] in _DOCKER:
            return True
        return name == self.server or name.startswith(f"{self.server}/")

    def auth(self) -> messages.AuthConfig:
        return messages.AuthConfig(
            username=self.username, password=self.password, server_address=self.server, identity_token=self.token
        )


def logins_in(secret: Mapping[str, bytes]) -> Iterator[RegistryLogin]:
    """None in a Secret without a readable login."""
    try:
        if _KEY in secret:
            entries = msgspec.json.decode(secret[_KEY], type=_File).auths
        else:
            entries = msgspec.json.decode(secret.get(_OLD_KEY, b"{}"), type=dict[str, _RegistryEntry])
        for server, entry in entries.items():
            user, password = entry.username, entry.password
            if entry.auth and not user:
                user, _, password = b64decode(entry.auth, validate=True).decode().partition(":")
            yield RegistryLogin(_bare(server), user, password, entry.identitytoken)
    except (msgspec.DecodeError, ValueError):
        return


def _bare(server: str) -> str:
    """Without the scheme and the path of the registry's interface."""
    bare = server.removeprefix("https://").removeprefix("http://").rstrip("/")
    return bare.removesuffix("/v1").removesuffix("/v2")

"""The server's own certificate authority, and what it has issued for itself.

Made on the first start and kept in the state folder, so that a kubeconfig written last week still works today.
Certificates of the server and of the administrator are renewed when they near their end, when the server is to be
reached under another name, or when they do not fit the authority any more; the authority itself and the key that
signs service account tokens are kept for ever. A folder with half an authority is refused: making a new one would
lock out all clients of the old one.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from shoal.client import certificates
from shoal.client.certificates import Pair
from shoal.embedded.apiserver.private_files import make_private_folder, write_private
from shoal.embedded.apiserver.security.showing import show
from shoal.units.errors import UserError, Where

LOOPBACK_HOSTS = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.96.0.1",
)
ADMIN = "kubernetes-admin"
ADMIN_GROUPS = ("system:masters",)
FRONT_PROXY = "front-proxy-client"
"""The name under which this server forwards requests to the servers of aggregated APIs."""
_SPARE = timedelta(days=30)
_TOKEN_BYTES = 32
_FRONT = "front-proxy"


class Authority(msgspec.Struct, frozen=True):
    """All secrets of one control plane."""

    root: Pair
    server: Pair
    admin: Pair
    signing_key: bytes
    """PEM; signs service account tokens."""
    admin_token: str
    front_proxy_root: Pair
    """Another authority: what it issues is believed by servers of aggregated APIs, and says nothing to this one."""
    front_proxy: Pair

    @property
    def root_certificate(self) -> str:
        """What clients trust, and what every namespace has as the ConfigMap kube-root-ca.crt."""
        return self.root.certificate.decode()

    def client(self, user: str, groups: Sequence[str], now: datetime) -> Pair:
        return certificates.new_client(self.root, user, groups, now)

    def server_context(self) -> ssl.SSLContext:
        """TLS that asks for a client certificate but does without: a token is as good."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.root_certificate)
        context.set_alpn_protocols(["http/1.1"])
        show(context, self.server)
        return context


def open_authority(folder: Path | None, now: datetime, hosts: Sequence[str] = ()) -> Authority:
    """What the folder keeps, completed; without a folder, an authority for this life only."""
    names = tuple(dict.fromkeys((*LOOPBACK_HOSTS, *hosts)))
    if folder is None:
        root = certificates.new_authority(now)
        front = certificates.new_authority(now, _FRONT)
        return Authority(
            root,
            certificates.new_server(root, names, now),
            certificates.new_client(root, ADMIN, ADMIN_GROUPS, now),
            certificates.new_key(),
            secrets.token_urlsafe(_TOKEN_BYTES),
            front,
            certificates.new_client(front, FRONT_PROXY, (), now),
        )
    make_private_folder(folder)
    root, front = _root(folder, now, "ca", "shoal"), _root(folder, now, f"{_FRONT}-ca", _FRONT)

    def serves(pair: Pair) -> bool:
        return certificates.hosts_of(pair) >= set(names)

    def client(name: str, issuer: Pair, user: str, groups: Sequence[str]) -> Pair:
        return _issued(
            folder, name, issuer, now, lambda: certificates.new_client(issuer, user, groups, now), lambda _: True
        )

    return Authority(
        root,
        _issued(folder, "server", root, now, lambda: certificates.new_server(root, names, now), serves),
        client("admin", root, ADMIN, ADMIN_GROUPS),
        _kept(folder / "service-accounts.key", certificates.new_key),
        _kept(folder / "admin.token", lambda: secrets.token_urlsafe(_TOKEN_BYTES).encode()).decode().strip(),
        front,
        client(_FRONT, front, FRONT_PROXY, ()),
    )


def _root(folder: Path, now: datetime, name: str, common: str) -> Pair:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    if certificate.exists() != key.exists():
        missing = key if certificate.exists() else certificate
        what = f"the certificate authority is incomplete: {missing.name} is missing"
        raise UserError(what, where=Where(str(folder)), fix="restore it, or start over with `shoal cluster reset`")
    if not certificate.exists():
        made = certificates.new_authority(now, common)
        # The certificate last: with it the pair counts as there.
        write_private(key, made.key)
        write_private(certificate, made.certificate)
        return made
    pair = Pair(certificate.read_bytes(), key.read_bytes())
    try:
        good = certificates.is_good(pair, pair, now, timedelta())
    except ValueError:
        good = False
    if not good:
        what = "the certificate authority is broken or has expired"
        raise UserError(what, where=Where(str(certificate)), fix="start over with `shoal cluster reset`")
    return pair


def _issued(
    folder: Path, name: str, root: Pair, now: datetime, make: Callable[[], Pair], fits: Callable[[Pair], bool]
) -> Pair:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    try:
        pair = Pair(certificate.read_bytes(), key.read_bytes())
        if certificates.is_good(pair, root, now, _SPARE) and fits(pair):
            return pair
    except (FileNotFoundError, ValueError):
        pass
    made = make()
    write_private(key, made.key)
    write_private(certificate, made.certificate)
    return made


def _kept(path: Path, make: Callable[[], bytes]) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        made = make()
        write_private(path, made)
        return made

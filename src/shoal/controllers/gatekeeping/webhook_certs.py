"""Creates and renews the webhook's certificates: an authority, and a server certificate that it signs. The functions
are pure except for random keys.

A new authority is published before a certificate that it signed is used: both authorities are trusted until the old one
expires, and the old certificate stays in use until its own renewal. So no connection fails meanwhile, whichever
certificate a replica presents.

Rejected: a self-signed certificate. It would have to be published and used at the same instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from shoal.client.certificates import Pair, hosts_of, is_good, is_whole, lives, new_authority, new_server

LEAF_LIFE = timedelta(days=90)
LEAF_SPARE = timedelta(days=30)
AUTHORITY_LIFE = timedelta(days=730)
AUTHORITY_SPARE = LEAF_LIFE + LEAF_SPARE
"""An authority must be valid longer than the certificates that it may still sign."""


class WebhookCerts(msgspec.Struct, frozen=True):
    """All values are PEM. `bundle`: all trusted authorities, the newest first."""

    bundle: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes

    @property
    def chain(self) -> bytes:
        """The certificate chain and the key of the server."""
        return self.certificate + self.key


def machine_date() -> datetime:
    """The date of the machine, by which clients check certificates, also beside a cluster with a faster clock."""
    return datetime.now(UTC)  # noqa: TID251 - see above


def new_papers(hosts: Sequence[str], now: datetime) -> WebhookCerts:
    authority = _new_authority(now)
    return _of(authority, authority.certificate, _new_leaf(authority, hosts, now))


def renewed(papers: WebhookCerts, hosts: Sequence[str], now: datetime) -> WebhookCerts:
    """The same certificates while they are valid, else new ones; raises ValueError for unreadable ones."""
    trusted = [
        Pair(one.public_bytes(Encoding.PEM), papers.authority_key)
        for one in x509.load_pem_x509_certificates(papers.bundle)
    ]
    authority, leaf = trusted[0], Pair(papers.certificate, papers.key)
    is_leaf_good = hosts_of(leaf) >= set(hosts) and any(
        is_good(leaf, one, now, LEAF_SPARE) and lives(one, now) for one in trusted
    )
    if not lives(authority, now, AUTHORITY_SPARE) or not is_whole(authority):
        if not is_leaf_good:
            return new_papers(hosts, now)
        kept = b"".join(one.certificate for one in trusted if lives(one, now))
        authority = _new_authority(now)
        return _of(authority, authority.certificate + kept, leaf)
    if is_leaf_good:
        return papers
    return _of(authority, papers.bundle, _new_leaf(authority, hosts, now))


def _of(authority: Pair, bundle: bytes, leaf: Pair) -> WebhookCerts:
    return WebhookCerts(bundle, authority.key, leaf.certificate, leaf.key)


def _new_authority(now: datetime) -> Pair:
    # Several authorities may be trusted at once, and clients find the one that signed by its name.
    return new_authority(now, f"shoal-webhook-{now:%Y%m%d%H%M%S}", AUTHORITY_LIFE)


def _new_leaf(authority: Pair, hosts: Sequence[str], now: datetime) -> Pair:
    return new_server(authority, hosts, now, "shoal-webhook", LEAF_LIFE)

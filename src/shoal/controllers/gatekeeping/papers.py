"""The webhook's own certificates: an authority, a certificate of it, and when each is made anew. Pure but for keys.

A new authority is published before anything it signed is shown: for as long as the old one lives both are trusted, and
the certificate goes on until its own time comes. So nobody who asks meanwhile is turned away, however many replicas
show whichever.

Rejected: one certificate that signs itself. It would have to be published and shown in the same instant.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LEAF_LIFE = timedelta(days=90)
LEAF_SPARE = timedelta(days=30)
AUTHORITY_LIFE = timedelta(days=730)
AUTHORITY_SPARE = LEAF_LIFE + LEAF_SPARE
"""An authority must outlive whatever it may still sign."""
_BACKDATED = timedelta(minutes=5)


class Papers(msgspec.Struct, frozen=True):
    """All PEM. `bundle` is every authority that is trusted, the newest first."""

    bundle: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes

    @property
    def chain(self) -> bytes:
        """What a server shows, with its key."""
        return self.certificate + self.key


def machine_date() -> datetime:
    """Whoever checks a certificate goes by a machine's date, also beside a cluster whose own time runs ahead."""
    return datetime.now(UTC)  # noqa: TID251 - see above


def new_papers(hosts: Sequence[str], now: datetime) -> Papers:
    authority, authority_key = _new_authority(now)
    certificate, key = _new_leaf((authority, authority_key), hosts, now)
    return Papers(authority, authority_key, certificate, key)


def renewed(papers: Papers, hosts: Sequence[str], now: datetime) -> Papers:
    """The same papers while they are good; raises ValueError for papers that cannot be read."""
    authorities = x509.load_pem_x509_certificates(papers.bundle)
    leaf = x509.load_pem_x509_certificate(papers.certificate)
    is_shown = _names(leaf) >= set(hosts) and _belongs(leaf, papers.key) and _is_signed(leaf, authorities, now)
    is_leaf_good = is_shown and _lives(leaf, now, LEAF_SPARE)
    if not _lives(authorities[0], now, AUTHORITY_SPARE) or not _belongs(authorities[0], papers.authority_key):
        if not is_leaf_good:
            return new_papers(hosts, now)
        authority, authority_key = _new_authority(now)
        kept = [_pem(one) for one in authorities if _lives(one, now)]
        return Papers(authority + b"".join(kept), authority_key, papers.certificate, papers.key)
    if is_leaf_good:
        return papers
    certificate, key = _new_leaf((_pem(authorities[0]), papers.authority_key), hosts, now)
    return Papers(papers.bundle, papers.authority_key, certificate, key)


def _lives(certificate: x509.Certificate, now: datetime, spare: timedelta = timedelta()) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - spare


def _is_signed(leaf: x509.Certificate, authorities: Sequence[x509.Certificate], now: datetime) -> bool:
    for authority in authorities:
        try:
            leaf.verify_directly_issued_by(authority)
        except Exception:  # noqa: BLE001, S112 - whatever is wrong with it, this one has not signed it
            continue
        return _lives(authority, now)
    return False


def _belongs(certificate: x509.Certificate, key: bytes) -> bool:
    return certificate.public_key() == _key(key).public_key()


def _names(certificate: x509.Certificate) -> set[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in found}


def _new_authority(now: datetime) -> tuple[bytes, bytes]:
    pem = _new_key()
    key = _key(pem)
    # Several authorities may be trusted at once, and clients find the one that signed by its name.
    name = _name(f"shoal-webhook-{now:%Y%m%d%H%M%S}")
    builder = _unsigned((name, name), key.public_key(), now, AUTHORITY_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _pem(builder.sign(key, hashes.SHA256())), pem


def _new_leaf(authority: tuple[bytes, bytes], hosts: Sequence[str], now: datetime) -> tuple[bytes, bytes]:
    issuer, issuer_key = x509.load_pem_x509_certificate(authority[0]), _key(authority[1])
    pem = _new_key()
    builder = _unsigned((_name("shoal-webhook"), issuer.subject), _key(pem).public_key(), now, LEAF_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([_host(one) for one in hosts]), critical=False)
    whose = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = builder.add_extension(whose, critical=False)
    return _pem(builder.sign(issuer_key, hashes.SHA256())), pem


def _unsigned(
    names: tuple[x509.Name, x509.Name], public: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    subject, issuer = names
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _new_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an elliptic curve key")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)

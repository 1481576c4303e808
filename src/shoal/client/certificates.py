"""Creates and checks keys and certificates: a certificate authority, and certificates of servers and clients.

All keys use the elliptic curve P-256: a key takes a tenth of a millisecond to generate, where RSA would delay the
start, and every client of Kubernetes supports it. This module uses no file and no clock: the embedded server stores its
certificates in its folder (`embedded/apiserver/security/authority.py`), and a webhook in a Secret
(`gatekeeping/webhook_certs.py`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
# Clocks of clients on other machines may be slow by some minutes.
_BACKDATED = timedelta(minutes=5)


class Pair(msgspec.Struct, frozen=True):
    """A certificate with its key, both as PEM."""

    certificate: bytes
    key: bytes

    @property
    def parsed(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate)

    @property
    def private_key(self) -> ec.EllipticCurvePrivateKey:
        return parse_key(self.key)


def new_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def parse_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an elliptic curve key")
    return key


def new_authority(now: datetime, common: str = "shoal", life: timedelta = AUTHORITY_LIFE) -> Pair:
    pem = new_key()
    key = parse_key(pem)
    name = _name(common)
    names = [x509.DNSName(common)]
    builder = (
        _unsigned(name, name, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return Pair(_signed(builder, key), pem)


def new_server(
    authority: Pair, hosts: Sequence[str], now: datetime, common: str = "kube-apiserver", life: timedelta = LEAF_LIFE
) -> Pair:
    """A certificate for a server with these names and addresses."""
    names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    return _leaf(authority, _name(common), (now, life), (ExtendedKeyUsageOID.SERVER_AUTH, names))


def new_client(authority: Pair, user: str, groups: Sequence[str], now: datetime) -> Pair:
    """Kubernetes reads the user from the common name and the groups from the organizations."""
    return _leaf(authority, _name(user, groups), (now, LEAF_LIFE), (ExtendedKeyUsageOID.CLIENT_AUTH, None))


def new_request(key: bytes, user: str) -> bytes:
    """A certificate signing request (PEM) for a key."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(user))
    return builder.sign(parse_key(key), hashes.SHA256()).public_bytes(Encoding.PEM)


def client_of_request(
    authority: Pair, request: bytes, user: tuple[str, Sequence[str]], now: datetime, life: timedelta
) -> bytes:
    """The certificate (PEM) of a client for the key of a request, and for this user and these groups, whatever the
    request says about its subject. Raises ValueError for anything but a request that its own key signed.
    """
    parsed = x509.load_pem_x509_csr(request)
    key = parsed.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("the key is not an elliptic curve key of P-256")
    if not parsed.is_signature_valid:
        raise ValueError("the request is not signed by its key")
    return _of_key(authority, key, _name(*user), (now, life), (ExtendedKeyUsageOID.CLIENT_AUTH, None))


def is_good(pair: Pair, authority: Pair, now: datetime, spare: timedelta) -> bool:
    """Whether a stored certificate was issued by this authority, belongs to its key, and remains valid for `spare`."""
    try:
        pair.parsed.verify_directly_issued_by(authority.parsed)
    except Exception:  # noqa: BLE001 - a certificate with any fault is replaced
        return False
    return is_whole(pair) and lives(pair, now, spare)


def is_whole(pair: Pair) -> bool:
    """Whether the certificate belongs to the key; raises ValueError for unreadable input."""
    return pair.parsed.public_key() == pair.private_key.public_key()


def lives(pair: Pair, now: datetime, spare: timedelta = timedelta()) -> bool:
    found = pair.parsed
    return found.not_valid_before_utc <= now < found.not_valid_after_utc - spare


def hosts_of(pair: Pair) -> set[str]:
    try:
        names = pair.parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in names}


def _leaf(
    authority: Pair,
    subject: x509.Name,
    when: tuple[datetime, timedelta],
    use: tuple[x509.ObjectIdentifier, x509.SubjectAlternativeName | None],
) -> Pair:
    pem = new_key()
    return Pair(_of_key(authority, parse_key(pem).public_key(), subject, when, use), pem)


def _of_key(
    authority: Pair,
    public: ec.EllipticCurvePublicKey,
    subject: x509.Name,
    when: tuple[datetime, timedelta],
    use: tuple[x509.ObjectIdentifier, x509.SubjectAlternativeName | None],
) -> bytes:
    issuer_key = authority.private_key
    purpose, names = use
    builder = (
        _unsigned(subject, authority.parsed.subject, public, *when)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return _signed(builder, issuer_key)


def _unsigned(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
    )


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> bytes:
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _name(common: str, organizations: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(signs: bool) -> x509.KeyUsage:
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

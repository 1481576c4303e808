"""Signs requests as a certificate authority would: its subject and key, the requested names, the requested uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

_BACKDATED = timedelta(minutes=5)
"""Clocks of clients may be slow by some minutes."""
_PURPOSES = {
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
}
Sign = Callable[[bytes, Sequence[str], timedelta], bytes]
"""A request (PEM), its usages and a lifetime, to a certificate (PEM)."""


def authority_signer(certificate: bytes, key: bytes, now: Callable[[], datetime]) -> Sign:
    """Certificate and key of the authority, both PEM. `now`: the time of the clients that check certificates; the clock
    of a cluster may run ahead of it.
    """
    root = x509.load_pem_x509_certificate(certificate)
    private: Any = load_pem_private_key(key, password=None)

    def sign(request: bytes, usages: Sequence[str], lifetime: timedelta) -> bytes:
        begins = now() - _BACKDATED
        parsed = x509.load_pem_x509_csr(request)
        purposes = [_PURPOSES[one] for one in usages if one in _PURPOSES]
        builder = (
            x509.CertificateBuilder()
            .subject_name(parsed.subject)
            .issuer_name(root.subject)
            .public_key(parsed.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(min(begins + lifetime, root.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(usages), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(private.public_key()), critical=False)
        )
        if purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        try:
            names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            builder = builder.add_extension(names.value, critical=names.critical)
        except x509.ExtensionNotFound:
            pass
        return builder.sign(private, hashes.SHA256()).public_bytes(Encoding.PEM)

    return sign


def ends(certificate: bytes) -> datetime:
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def _key_usage(usages: Sequence[str]) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature="digital signature" in usages or "signing" in usages,
        content_commitment="content commitment" in usages,
        key_encipherment="key encipherment" in usages,
        data_encipherment="data encipherment" in usages,
        key_agreement="key agreement" in usages,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )

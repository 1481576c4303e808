"""Requests for certificates that are signed properly and cannot be read to the end."""

from __future__ import annotations

from base64 import b64encode

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

_ALTERNATIVE = b"\x82\x08abcdefgh"
PATCHES = {
    "a common name that is no UTF-8": (b"MARKER12", b"\xff\xfe\xfd\xfc\xff\xfe\xfd\xfc"),
    "a common name that is no text": (b"\x0c\x08MARKER12", b"\x02\x08MARKER12"),
    "a kind of name that nobody reads": (_ALTERNATIVE, b"\xa3" + _ALTERNATIVE[1:]),
    "an address of eight bytes": (_ALTERNATIVE, b"\x87" + _ALTERNATIVE[1:]),
    "a version that does not exist": (b"\x02\x01\x00", b"\x02\x01\x05"),
}


def unreadable_request(which: str) -> str:
    """As `spec.request` has it: PEM in base64."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "MARKER12")]
    names.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"))
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("abcdefgh")]), critical=False)
    sound = made.sign(key, hashes.SHA256())
    before, after = PATCHES[which]
    said = sound.tbs_certrequest_bytes
    assert said.count(before) >= 1
    said = said.replace(before, after, 1)
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")  # ecdsa-with-SHA256
    signature = key.sign(said, ec.ECDSA(hashes.SHA256()))
    whole = said + algorithm + b"\x03" + _length(len(signature) + 1) + b"\x00" + signature
    der = b"\x30" + _length(len(whole)) + whole
    label = "CERTIFICATE REQUEST"
    pem = f"-----BEGIN {label}-----\n{b64encode(der).decode()}\n-----END {label}-----\n"
    if which != "a version that does not exist":
        assert x509.load_pem_x509_csr(pem.encode()).public_bytes(Encoding.DER) == der
    return b64encode(pem.encode()).decode()


def _length(count: int) -> bytes:
    if count < 128:
        return bytes([count])
    size = (count.bit_length() + 7) // 8
    return bytes([128 + size]) + count.to_bytes(size, "big")

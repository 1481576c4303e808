"""The certificates that the server trusts when it calls others: the bundle of a webhook or an APIService.

As Go does, a certificate in the bundle is believed whether it is an authority or the server's own, and old habits in
certificates (no key identifiers) are forgiven. Errors of OpenSSL are reported with Go's messages, for which users
search.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from functools import lru_cache

_EXPIRED, _NOT_YET, _HOST, _ADDRESS = 10, 9, 62, 64


class BundleError(Exception):
    """What should be certificates is something else."""


def new_context(bundle: str) -> ssl.SSLContext:
    """Believes the certificates of a base64 bundle, or without one the system's. BundleError if it is none."""
    made = ssl.create_default_context()
    if bundle:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            made.load_verify_locations(cadata=base64.b64decode(bundle, validate=True).decode("ascii"))
        except (binascii.Error, UnicodeDecodeError, ssl.SSLError):
            raise BundleError("unable to load root certificates: unable to parse bytes as PEM block") from None
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return made


context_for = lru_cache(maxsize=256)(new_context)
"""The same, kept: connections are kept by it."""


def new_blind_context() -> ssl.SSLContext:
    """Trusts every certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def fault_words(error: BaseException, server_name: str) -> str:
    """What is wrong with a certificate, as Go says it."""
    lead = "tls: failed to verify certificate: x509: "
    code = getattr(error, "verify_code", None)
    if code in (_EXPIRED, _NOT_YET):
        return f"{lead}certificate has expired or is not yet valid"
    if code in (_HOST, _ADDRESS):
        return f"{lead}certificate is not valid for {server_name}"
    if code is not None:
        return f"{lead}certificate signed by unknown authority"
    return f"tls: {getattr(error, 'reason', None) or error}"

"""Makes the TLS context of a client: trusted authorities and client certificate."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from shoal.client.http.access import Access
from shoal.units.errors import UserError, Where


def client_context(access: Access) -> ssl.SSLContext:
    try:
        context = _trusting(access)
    except (ssl.SSLError, ValueError):
        fix = "it must be PEM"
        raise UserError("the certificate authority cannot be read", where=Where(access.where), fix=fix) from None
    context.set_alpn_protocols(["http/1.1"])
    # The authorities of clusters often lack extensions that newer Python versions require of public ones.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if access.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate:
        _show(context, access)
    return context


def _trusting(access: Access) -> ssl.SSLContext:
    if access.is_insecure and not access.authority:
        # Reading the system's authorities takes 50 ms, and nothing is verified.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context(cadata=access.authority or None)


def _show(context: ssl.SSLContext, access: Access) -> None:
    """OpenSSL reads a certificate and its key from a file only: a temporary one that no other user may read."""
    descriptor, path = tempfile.mkstemp(prefix="shoal-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(access.certificate + b"\n" + access.key)
        context.load_cert_chain(path)
    except ssl.SSLError:
        fix = "both must be PEM, and the key the certificate's, without a password"
        raise UserError("the client certificate cannot be used", where=Where(access.where), fix=fix) from None
    finally:
        Path(path).unlink()

"""A certificate shown to the other side of a connection.

OpenSSL takes a certificate with its key from files only, so for a moment they are in one that other users cannot read.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from shoal.client.certificates import Pair
from shoal.embedded.apiserver.private_files import write_private


def show(context: ssl.SSLContext, pair: Pair) -> None:
    with tempfile.TemporaryDirectory(prefix="shoal-") as folder:
        path = Path(folder) / "pair.pem"
        write_private(path, pair.certificate + pair.key)
        context.load_cert_chain(path)

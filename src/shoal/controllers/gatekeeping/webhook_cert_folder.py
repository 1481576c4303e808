"""Reads the webhook's certificate and key from a folder, where another program such as cert-manager renews them.

The folder is a mounted Secret. Nothing is written, so that the process needs no right on Secrets. The authority is not
published from here: the program that renews the certificate writes it to the configurations that name it.
"""

from __future__ import annotations

from pathlib import Path

from shoal.controllers.gatekeeping.webhook_certs import WebhookCerts
from shoal.units.errors import TemporaryError

_AGAIN_S = 10.0
_CERTIFICATE, _KEY = "tls.crt", "tls.key"


class WebhookCertFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def papers(self) -> WebhookCerts:
        """As they are now. Raises TemporaryError while they are missing."""
        try:
            certificate, key = ((self._folder / name).read_bytes() for name in (_CERTIFICATE, _KEY))
        except OSError as error:
            what = f"{self._folder}: the certificate of the webhook cannot be read: {error.strerror or error}"
            raise TemporaryError(what, _AGAIN_S) from None
        if not certificate or not key:
            raise TemporaryError(f"{self._folder}: the certificate of the webhook is not issued yet", _AGAIN_S)
        return WebhookCerts(b"", b"", certificate, key)

"""Authenticates this server to aggregated API servers as the front proxy whose user headers they trust.

They find the authority of its certificate in a ConfigMap (`bootstrap/client_trust.py`). Contexts are kept, because
connections are kept by them.
"""

from __future__ import annotations

import ssl

from shoal.client.certificates import Pair
from shoal.embedded.apiserver.dynamic.trust import new_blind_context, new_context
from shoal.embedded.apiserver.security.showing import show

_MOST = 256


class FrontProxy:
    def __init__(self, shown: Pair) -> None:
        self._shown = shown
        self._contexts: dict[str | None, ssl.SSLContext] = {}

    def context(self, bundle: str | None) -> ssl.SSLContext:
        """For connections to servers with a certificate of the bundle; to any server for None."""
        found = self._contexts.get(bundle)
        if found is not None:
            return found
        made = new_blind_context() if bundle is None else new_context(bundle)
        show(made, self._shown)
        if len(self._contexts) >= _MOST:
            self._contexts.clear()
        self._contexts[bundle] = made
        return made

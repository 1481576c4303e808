"""`/shoal/faults` on the API server: faults are asked for, shown and ended there.

    POST /shoal/faults/slow-api        {"delay_ms": 200, "jitter_ms": 50, "seconds": 60, "verbs": ["list"]}
    POST /shoal/faults/expire-watches  {}
    GET, DELETE /shoal/faults

A delay of nothing ends a slow API as well.

Access is decided by the permissions for these paths (nonResourceURLs) before this is called. What is asked for here is
never delayed itself, or a fault could not be ended.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.server_faults.faults import Faults
from shoal.embedded.apiserver.server_faults.slow_api import slow_api

Obj = dict[str, Any]
ROOT = "/shoal/faults"
LONGEST_BODY = 64 << 10
_log = logging.getLogger("shoal.cluster")


def is_of_faults(path: str) -> bool:
    return path == ROOT or path.startswith(f"{ROOT}/")


class FaultPaths:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.before = faults.before

    def answer(self, method: str, path: str, body: bytes) -> Obj:
        """What is on afterwards. ApiError where there is nothing at the path, or what is sent makes no sense."""
        fault = path.removeprefix(ROOT).strip("/")
        if fault not in ("", "slow-api", "expire-watches"):
            raise status.no_such_path()
        allowed = ("GET", "HEAD", "DELETE") if not fault else ("POST",)
        if method not in allowed:
            raise status.method_not_supported("", "")
        if fault == "slow-api":
            wanted = slow_api(_decoded(body))
            self._faults.slow_down(wanted)
            _log.warning("requests wait %d ms, and up to %d more", wanted.delay_ms, wanted.jitter_ms)
        elif fault == "expire-watches":
            if _decoded(body) != {}:
                raise status.bad_request("expire-watches takes nothing: send {}")
            self._faults.expire_watches()
            _log.warning("all watches have lost their place")
        elif method == "DELETE":
            self._faults.end()
        return self._faults.shown()


def _decoded(body: bytes) -> Any:
    if len(body) > LONGEST_BODY:
        raise status.too_large(LONGEST_BODY)
    if not body.strip():
        return {}
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise status.bad_request(f"the body is not JSON: {error}") from None

"""Serves `/shoal/faults` on the API server: starts, shows and ends faults.

    POST /shoal/faults/slow-api        {"delay_ms": 200, "jitter_ms": 50, "seconds": 60, "verbs": ["list"]}
    POST /shoal/faults/expire-watches  {}
    POST /shoal/faults/refuse-requests {"status": 409, "count": 1, "verbs": ["update"], "resource": "configmaps"}
    GET, DELETE /shoal/faults

A delay of 0 also ends a slow API, and a count of 0 ends refused requests.

Access is decided by the permissions for these paths (nonResourceURLs) before this is called. Requests
to these paths are never delayed or refused by a fault, or it could not be ended.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.server_faults.faults import Faults
from shoal.embedded.apiserver.server_faults.refused_requests import refused_requests
from shoal.embedded.apiserver.server_faults.slow_api import slow_api

Obj = dict[str, Any]
ROOT = "/shoal/faults"
LONGEST_BODY = 64 << 10
_log = logging.getLogger("shoal.cluster")


def is_of_faults(path: str) -> bool:
    return path == ROOT or path.startswith(f"{ROOT}/")


class FaultRoutes:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.before = faults.before
        self.check = faults.check

    def answer(self, method: str, path: str, body: bytes) -> Obj:
        """What is on afterwards. ApiError where there is nothing at the path, or what is sent makes no sense."""
        fault = path.removeprefix(ROOT).strip("/")
        if fault not in ("", "slow-api", "expire-watches", "refuse-requests"):
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
        elif fault == "refuse-requests":
            refused = refused_requests(_decoded(body))
            self._faults.refuse(refused)
            _log.warning("the next %d matching requests are refused with %d", refused.count, refused.status)
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

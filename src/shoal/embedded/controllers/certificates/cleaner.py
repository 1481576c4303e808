"""Deletes signing requests: an hour after their decision, a day after their creation, or when the issued certificate
expires.
"""

from __future__ import annotations

from base64 import b64decode
from datetime import datetime, timedelta

from shoal.client.context import Context, Controller
from shoal.client.item import Key, Obj
from shoal.client.kind import SIGNING_REQUESTS
from shoal.client.loop import Loop
from shoal.client.port import Deletion
from shoal.embedded.controllers.certificates.authority import ends

_ANSWERED, _OPEN = timedelta(hours=1), timedelta(hours=24)


def over(request: Obj) -> datetime:
    """When the request can be deleted."""
    status = request.get("status") or {}
    moments = [
        _moment(one.get("lastUpdateTime") or request["metadata"]["creationTimestamp"]) + _ANSWERED
        for one in status.get("conditions") or ()
        if one["type"] in ("Approved", "Denied", "Failed")
    ]
    if status.get("certificate"):
        moments.append(ends(b64decode(status["certificate"])))
    elif not moments:
        moments.append(_moment(request["metadata"]["creationTimestamp"]) + _OPEN)
    return min(moments)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def csr_cleaner(context: Context) -> Controller:
    requests = context.informers.of(SIGNING_REQUESTS)

    async def reconcile(key: Key) -> float | None:
        item = requests.get(*key)
        if item is None:
            return None
        left_s = over(item.obj()).timestamp() - context.clock.seconds()
        if left_s > 0:
            return left_s
        await context.api.delete(SIGNING_REQUESTS, "", item.name, Deletion(uid=item.uid, version=item.version))
        return None

    loop = Loop(context, reconcile, workers=1)
    loop.follow(SIGNING_REQUESTS)
    return loop

"""Deletes the Secrets of expired bootstrap tokens; tokens without an expiration, or with an unreadable one, stay."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import SECRETS
from shoal.client.loop import Loop
from shoal.client.port import Deletion

_NAMESPACE, _TYPE = "kube-system", b'"bootstrap.kubernetes.io/token"'


def token_cleaner(context: Context) -> Controller:
    secrets = context.informers.of(SECRETS)

    async def reconcile(key: Key) -> float | None:
        item = secrets.get(*key)
        end_s = expires_s(item.obj()) if item is not None and _is_token(item) else None
        if item is None or end_s is None:
            return None
        left_s = end_s - context.clock.seconds()
        if left_s > 0:
            return left_s
        await context.api.delete(SECRETS, item.namespace, item.name, Deletion(uid=item.uid, version=item.version))
        return None

    loop = Loop(context, reconcile, workers=1)
    loop.follow(SECRETS, lambda item: [item.key] if _is_token(item) else [])
    return loop


def expires_s(secret: Obj) -> float | None:
    written = (secret.get("data") or {}).get("expiration")
    if not written:
        return None
    try:
        moment = datetime.fromisoformat(b64decode(written).decode())
    except ValueError:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _is_token(item: Item) -> bool:
    return item.namespace == _NAMESPACE and _TYPE in item.data

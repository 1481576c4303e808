"""Fills Secrets of the type service-account-token with a token of the named account, the certificate and the namespace.

The Secret of a deleted account is deleted. Such tokens do not expire, and no API request creates one; therefore the
caller, which has the server's key, passes a signing function.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import SECRETS, SERVICE_ACCOUNTS
from shoal.client.loop import Loop
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError

_TYPE = b'"kubernetes.io/service-account-token"'
_NAME, _UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
SignToken = Callable[[Obj, Obj], str]
"""Signs a token for an account and a Secret that is valid while both exist."""


def token_secrets_controller(context: Context, sign: SignToken, certificate: str) -> Controller:
    secrets, accounts = context.informers.of(SECRETS), context.informers.of(SERVICE_ACCOUNTS)
    by_account = secrets.index("service-account", lambda item: [_account(item)] if _is_token(item) else [])

    async def reconcile(key: Key) -> None:
        item = secrets.get(*key)
        if item is None or not _is_token(item):
            return
        secret = item.obj()
        notes = secret["metadata"].get("annotations") or {}
        if secret["metadata"].get("deletionTimestamp") or not notes.get(_NAME):
            return
        account = await _live(item.namespace, notes[_NAME])
        if account is None or notes.get(_UID, account["metadata"]["uid"]) != account["metadata"]["uid"]:
            await context.api.delete(SECRETS, item.namespace, item.name, Deletion(uid=item.uid, version=item.version))
            return
        wanted = {"namespace": _packed(item.namespace), "ca.crt": _packed(certificate)}
        data = secret.get("data") or {}
        if not data.get("token"):
            wanted["token"] = _packed(sign(account, secret))
        uid = account["metadata"]["uid"]
        if notes.get(_UID) != uid or any(data.get(name) != value for name, value in wanted.items()):
            secret["metadata"]["annotations"] = notes | {_UID: uid}
            secret["data"] = data | wanted
            await context.api.update(SECRETS, secret)

    async def _live(namespace: str, name: str) -> Obj | None:
        item = accounts.get(namespace, name)
        if item is None:
            try:
                item = await context.api.get(SERVICE_ACCOUNTS, namespace, name)
            except NotFoundError:
                return None
        return item.obj()

    loop = Loop(context, reconcile)
    loop.follow(SECRETS, lambda item: [item.key] if _is_token(item) else [])
    loop.follow(SERVICE_ACCOUNTS, lambda item: [one.key for one in by_account[f"{item.namespace}/{item.name}"]])
    return loop


def _is_token(item: Item) -> bool:
    return _TYPE in item.data


def _account(item: Item) -> str:
    notes = item.obj()["metadata"].get("annotations") or {}
    return f"{item.namespace}/{notes.get(_NAME, '')}"


def _packed(text: str) -> str:
    return b64encode(text.encode()).decode()

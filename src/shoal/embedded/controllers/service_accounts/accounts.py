"""Creates a service account `default` in every namespace, which pods use by default."""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.client.item import Key
from shoal.client.kind import NAMESPACES, SERVICE_ACCOUNTS
from shoal.client.loop import Loop
from shoal.client.refusals import AlreadyExistsError

_NAME = "default"


def service_account_controller(context: Context) -> Controller:
    namespaces, accounts = context.informers.of(NAMESPACES), context.informers.of(SERVICE_ACCOUNTS)

    async def reconcile(key: Key) -> None:
        namespace = namespaces.get(*key)
        if namespace is None or namespace.obj()["metadata"].get("deletionTimestamp"):
            return
        if accounts.get(namespace.name, _NAME) is None:
            try:
                await context.api.create(SERVICE_ACCOUNTS, {"metadata": {"name": _NAME, "namespace": namespace.name}})
            except AlreadyExistsError:
                return

    loop = Loop(context, reconcile)
    loop.follow(NAMESPACES)
    loop.follow(SERVICE_ACCOUNTS, lambda item: [("", item.namespace)] if item.name == _NAME else [])
    return loop

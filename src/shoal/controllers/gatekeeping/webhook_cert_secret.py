"""Stores the webhook's certificate and key in one Secret for all replicas.

The first replica creates it; the others use what they find. A renewal is a write for the version that was read, so of
two replicas that renew at once one gets a conflict, reads again, and uses the other's certificate. The private keys
are in this Secret and in the memory of the replicas, and nowhere else.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import NAMESPACES, SECRETS
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.controllers.gatekeeping.policies import OURS
from shoal.controllers.gatekeeping.webhook_certs import WebhookCerts, new_papers, renewed

_log = logging.getLogger("shoal.gatekeeping")
_FIELDS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


class WebhookCertSecret:
    def __init__(
        self, context: Context, address: tuple[str, str], hosts: Sequence[str], date: Callable[[], datetime]
    ) -> None:
        """`address`: namespace and name of the Secret."""
        self._context = context
        self._namespace, self._name = address
        self._date = date
        self._hosts = hosts

    async def papers(self) -> WebhookCerts:
        """Valid certificates: created, adopted or renewed. A ConflictError means that another replica was faster: call
        again.
        """
        now = self._date()
        try:
            item = await self._context.api.get(SECRETS, self._namespace, self._name)
        except NotFoundError:
            return await self._made(new_papers(self._hosts, now))
        try:
            known = _read(item)
            fresh = renewed(known, self._hosts, now)
        except (ValueError, KeyError, binascii.Error):
            _log.warning("the Secret %s/%s cannot be read and is made anew", self._namespace, self._name)
            known, fresh = None, new_papers(self._hosts, now)
        if fresh != known:
            obj = item.obj()
            obj["data"] = {**(obj.get("data") or {}), **_written(fresh)}
            await self._context.api.update(SECRETS, obj)
        return fresh

    async def _made(self, papers: WebhookCerts) -> WebhookCerts:
        meta: Obj = {"name": self._name, "namespace": self._namespace, "labels": dict(OURS)}
        secret = {"metadata": meta, "type": "kubernetes.io/tls", "data": _written(papers)}
        try:
            await self._context.api.create(SECRETS, secret)
        except NotFoundError:
            await self._make_namespace()
            return await self._made(papers)
        except AlreadyExistsError:
            return await self.papers()
        return papers

    async def _make_namespace(self) -> None:
        try:
            await self._context.api.create(NAMESPACES, {"metadata": {"name": self._namespace, "labels": dict(OURS)}})
        except AlreadyExistsError:
            return


def _read(item: Item) -> WebhookCerts:
    data = item.obj().get("data") or {}
    authority, authority_key, certificate, key = (base64.b64decode(data[name]) for name in _FIELDS)
    return WebhookCerts(authority, authority_key, certificate, key)


def _written(papers: WebhookCerts) -> dict[str, str]:
    values = (papers.bundle, papers.authority_key, papers.certificate, papers.key)
    return {name: base64.b64encode(value).decode() for name, value in zip(_FIELDS, values, strict=True)}

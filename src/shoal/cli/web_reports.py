"""Answers for the pages of `shoal web` with the code of `shoal queue` and `shoal why`, each in a thread of its own.

Reading a cluster and looking for what would help take seconds; meanwhile the server answers others. At most two
explanations are computed at once, because each of them uses a core. The quota tree, which all viewers share, does not
wait for them; it is requested one at a time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from threading import Event
from typing import TypeVar

import typer
from msgspec import structs

from shoal.api.decode import Unknown
from shoal.cli.addressed_commands import with_flags
from shoal.cli.manifests import loaded_of
from shoal.cli.object_source import Source, sound
from shoal.cli.queue_lists import quota_tree_of
from shoal.cli.what_if import what_if
from shoal.cli.why import WhyOptions, explain
from shoal.client.clock import WallClock
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.settings import KubeSettings
from shoal.store.snapshot.reading import QueueRuling, Snapshot, read_snapshot
from shoal.units.errors import UserError
from shoal.views.explanation_document import StoryDocument, document_of
from shoal.views.queue_tree import Tree
from shoal.views.scale_plan import PoolView
from shoal.views.what_if import Proposal, WhatIfAnswer

T = TypeVar("T")
_TIMEOUT_S = 20.0
_AT_ONCE = 2
_NODE_POOL = "NodePool"


class CommandReports:
    def __init__(self, access: Access, flags: Sequence[str]) -> None:
        """`flags`: those that make a command use this cluster."""
        self._access, self._flags = access, flags
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def quota_tree(self) -> Tree | None:
        return await _in_thread(lambda: quota_tree_of(read_source(self._access)))

    async def node_pools(self) -> Sequence[PoolView]:
        return await _in_thread(lambda: _pools(read_source(self._access)))

    async def what_if(self, proposal: Proposal) -> WhatIfAnswer:
        async with self._turns:
            answer = await _in_thread(lambda: what_if(read_source(self._access), proposal))
        return structs.replace(answer, commands=[with_flags(one, self._flags) for one in answer.commands])

    async def explanation(self, kind: str, namespace: str, name: str, token: str) -> StoryDocument:
        access = with_token(self._access, token) if token else self._access
        options = WhyOptions(namespace=namespace)
        is_over = Event()

        def explained() -> StoryDocument:
            source = read_source(access).in_namespace(namespace)
            if is_over.is_set():
                raise UserError("the explanation is not wanted any more")
            return document_of(explain(source, f"{kind}/{name}", options, self._flags, lambda: not is_over.is_set()))

        async with self._turns:
            try:
                return await _in_thread(explained)
            finally:
                # The thread of a request that was cancelled looks no further.
                is_over.set()


def _pools(source: Source) -> Sequence[PoolView]:
    """A cluster without pools needs no plan."""
    if not any(isinstance(one.value, Unknown) and one.value.kind == _NODE_POOL for one in source.documents):
        return ()
    from shoal.cli.scale_commands import pools_of

    return pools_of(source, warns=False)


async def _in_thread(compute: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(compute)
    except typer.Exit:
        # A command writes the refusal on standard error and ends.
        raise UserError("the cluster refused what this needs; the server's standard error has why") from None


def read_source(access: Access) -> Source:
    """The objects of the cluster. Raises ForbiddenError for a user who may not list them."""
    snapshot = asyncio.run(_read(access))
    found, loaded = sound(snapshot, loaded_of)
    documents = [entry.document for entry in found.entries]
    return Source(documents, access.namespace, access.where, loaded, found.notes, access)


async def _read(access: Access) -> Snapshot:
    api = KubeApi(access, random.Random(), KubeSettings(timeout_s=_TIMEOUT_S))
    try:
        return await read_snapshot(api, QueueRuling(), WallClock().now())
    finally:
        await api.close()


def with_token(access: Access, token: str) -> Access:
    """The same server with this token and nothing else that identifies a user."""
    return structs.replace(
        access,
        token=token,
        token_file=None,
        certificate=b"",
        key=b"",
        certificate_file=None,
        key_file=None,
        program=None,
        headers=(),
        again=None,
    )

"""Implements `--watch`: prints a list, then each row that changes, until Ctrl-C.

Guarantees: the cluster is read again only after one of its objects has changed, and no more than a tenth of the time is
spent on readings; a row is printed again only if its text has changed. Rejected: reading at fixed intervals, which
loads a large cluster while nothing happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TextIO

from shoal.cli.cluster_access import AccessOptions, announce, speak
from shoal.cli.list_output import Listing, OutputForm, document_of, line_of_rows, name_of, write_document
from shoal.cli.object_source import Source, read_picture
from shoal.client.clock import Clock, LoopClock

if TYPE_CHECKING:
    from shoal.client.informers import Informers
    from shoal.client.port import Api

_SETTLE_S = 0.3
"""Changes come in groups: a scheduler writes a pod, its gang and its workload."""
_PAUSES = 10
"""After a reading, none begins for this many times as long as it took: a large cluster changes all the time."""


def watch(options: AccessOptions, form: OutputForm, listing_of: Callable[[Source], Listing]) -> None:
    shown = Shown(form)
    watch_source(options, lambda source: shown.show(listing_of(source)))


def watch_text(options: AccessOptions, write: Callable[[Source], None]) -> None:
    """Prints what `write` writes, and prints it again when it has become another text."""
    shown = ShownText()
    watch_source(options, lambda source: shown.show(lambda: write(source)))


class ShownText:
    """The text that was printed last."""

    def __init__(self) -> None:
        self._before = ""

    def show(self, write: Callable[[], None]) -> None:
        with contextlib.redirect_stdout(_Captured(sys.stdout)) as captured:
            write()
        text = captured.getvalue()
        if text != self._before:
            sys.stdout.write(f"\n{text}" if self._before else text)
            sys.stdout.flush()
        self._before = text


class _Captured(io.StringIO):
    """A text in the width and the colours of the stream that it is written to later."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def watch_source(options: AccessOptions, show: Callable[[Source], None]) -> None:
    access = options.access()
    announce(access)

    async def work(api: Api) -> None:
        async def present() -> None:
            snapshot, loaded = await read_picture(api, access)
            documents = [entry.document for entry in snapshot.entries]
            show(Source(documents, access.namespace, access.where, loaded, (), access))

        await follow(api, present, LoopClock(time.time()))

    speak(access, work)


async def follow(api: Api, present: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Calls `present` at once, and again after each group of changes."""
    from shoal.client.informers import Informers
    from shoal.store.snapshot.kinds import NEEDED

    changed = asyncio.Event()
    informers = Informers(api, clock, random.Random())
    await _watch_kinds(api, informers, changed)
    running = asyncio.ensure_future(informers.run())
    try:
        # Kinds that the user may not read stay without a cache.
        await informers.synced(NEEDED)
        while True:
            changed.clear()
            began_s = clock.seconds()
            await present()
            ended_s = clock.seconds()
            await changed.wait()
            pause_s = ended_s + _PAUSES * (ended_s - began_s) - clock.seconds()
            await clock.sleep(max(_SETTLE_S, pause_s))
    finally:
        running.cancel()


async def _watch_kinds(api: Api, informers: Informers, changed: asyncio.Event) -> None:
    from shoal.client.served import answering
    from shoal.store.snapshot.kinds import present

    for kind in present(await answering(api)):
        informers.of(kind).on_change(lambda *_: changed.set())


class Shown:
    """The rows as they were printed last."""

    def __init__(self, form: OutputForm) -> None:
        self._form = form
        self._before: dict[str, object] = {}
        self._is_first = True

    def show(self, listing: Listing) -> None:
        keys = [listing.of.key(row) for row in listing.rows]
        if self._form.is_table:
            heading, lines = line_of_rows(listing, self._form)
            if self._is_first and self._form.has_headings and lines:
                sys.stdout.write(f"{heading}\n")
            self._is_first = self._is_first and not lines
            self._changes(dict(zip(keys, lines, strict=True)), lambda line: sys.stdout.write(f"{line}\n"))
        elif self._form.name == "name":
            names = {key: name_of(listing.of, row) for key, row in zip(keys, listing.rows, strict=True)}
            self._changes(names, lambda name: sys.stdout.write(f"{name}\n"))
        else:
            documents = {
                key: document_of(Listing(listing.of, [row], is_one=True, objects=listing.objects))
                for key, row in zip(keys, listing.rows, strict=True)
            }
            self._changes(documents, lambda document: write_document(document, self._form))
        sys.stdout.flush()

    def _changes(self, present: dict[str, Any], put: Callable[[Any], object]) -> None:
        for key, value in present.items():
            if self._before.get(key) != value:
                put(value)
        self._before = dict(present)

"""Prints one table of the pages of `shoal web` in the terminal, with the rows that the page has."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import typer

from shoal.cli.cluster_access import in_one_line
from shoal.cli.formats import console
from shoal.cli.web_runs import WebRun, followed, site_of
from shoal.client.http.access import Access
from shoal.units.errors import UserError, Where, excerpt
from shoal.views.queue_table import NUMBER, WORDS, show_table
from shoal.web.page import WebPage
from shoal.web.tables import DataTable

_PATIENCE_S = 5.0


def print_table(access: Access, run: WebRun, address: str) -> None:
    """`address`: that of a page, then `#` and the name of one of its tables. Raises UserError where there is none."""
    with in_one_line(access):
        table = asyncio.run(_table(access, run, address))
    if not table.rows:
        typer.echo(table.empty, err=True)
        return
    leasts = [NUMBER if heading.is_number else WORDS for heading in table.headings]
    rows = [[cell.text for cell in row] for row in table.rows]
    show_table(console(), [heading.text for heading in table.headings], leasts, rows)


async def _table(access: Access, run: WebRun, address: str) -> DataTable:
    page_address, _, key = address.partition("#")
    parts = urlsplit(page_address)
    async with followed(access) as cluster:
        await cluster.facts.follow_present_kinds(cluster.api)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await cluster.informers.synced()
        except TimeoutError:
            typer.echo("shoal: warning: not all kinds of objects can be listed: the table may lack some", err=True)
        site = site_of(cluster.facts, access, run, cluster.clock)
        page = await site.page(parts.path, {**dict(parse_qsl(parts.query)), "csv": key}, "")
    found = page.table(key)
    if found is None:
        what = f"{excerpt(address)} is no table of a page"
        raise UserError(what, where=Where(path="--table"), fix=_fix(page))
    return found


def _fix(page: WebPage) -> str:
    if page.tables:
        return f"tables of {page.path}: {', '.join(one.key for one in page.tables)}"
    words = unescape(re.sub("<[^<>]*>", " ", " ".join(page.parts.values()))).split()
    return f"write it as in '/queues#waits'; the page says: {' '.join(words)}"

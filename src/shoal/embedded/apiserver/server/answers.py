"""Answers as bytes: one object, a list, a table, metadata alone; as JSON or, when asked for, YAML."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web

from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.chunked import AT_LEAST, ChunkedAnswer, Items, Part
from shoal.embedded.apiserver.large_work import LARGE_BYTES, Turn
from shoal.embedded.apiserver.resource import Obj, Resource
from shoal.embedded.apiserver.rest import codec
from shoal.embedded.apiserver.rest.context import ServerContext, computed, turn_of
from shoal.embedded.apiserver.rest.reading import Listed
from shoal.embedded.apiserver.server.accept import Form
from shoal.embedded.apiserver.server.warning_headers import headers_of
from shoal.embedded.apiserver.server.yaml_answers import as_yaml, as_yaml_slowly
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.tables.registry import printer_of
from shoal.embedded.apiserver.tables.table import include_of, partial, partial_list, table

_JSON = "application/json"
_ROWS = 500
"""Of a table that are made before others get their turn."""
_encode = msgspec.json.Encoder().encode


def answer(code: int, body: bytes | Mapping[str, object], form: Form, call: Call | None = None) -> web.Response:
    """For what is small. What may be large is `_said`: in YAML it takes long."""
    data = body if isinstance(body, bytes) else _encode(body)
    return _made(code, as_yaml(data) if form.is_yaml else data, form, call)


async def _said(
    context: ServerContext, code: int, body: bytes | Mapping[str, object], form: Form, call: Call
) -> web.Response:
    data = body if isinstance(body, bytes) else await computed(context, call, _encode, body)
    if form.is_yaml:
        if call.verb in ("get", "list"):
            context.large.check(call.actor.name)
        if call.begun is not None:
            call.begun()

        def aside(work: Callable[[Any], Any], value: Any) -> Awaitable[Any]:
            return context.large.run(turn_of(call), work, value)

        data = await as_yaml_slowly(data, aside)
    return _made(code, data, form, call)


def _made(code: int, data: bytes, form: Form, call: Call | None) -> web.Response:
    content_type = "application/yaml" if form.is_yaml else _JSON
    if not data.endswith(b"\n"):
        # Go's encoder ends each value with a newline, and clients compare whole bodies.
        data += b"\n"
    return _warned(web.Response(status=code, body=data, content_type=content_type), call)


def _warned(response: web.Response, call: Call | None) -> web.Response:
    if call is not None and call.warnings:
        for text in headers_of(call.warnings):
            response.headers.add("Warning", text)
    return response


def refusal(error: ApiError, form: Form, call: Call | None = None) -> web.Response:
    response = answer(error.code, error.status(), form, call)
    response.headers.update(error.headers)
    return response


def no_page() -> web.Response:
    """What a path answers that no part of the server has: no Status."""
    return web.Response(status=404, text="404 page not found\n", headers={"X-Content-Type-Options": "nosniff"})


async def make_pretty(context: ServerContext, response: web.StreamResponse, asked: str, user: str) -> None:
    """Indent a body for users who read it raw."""
    if not isinstance(response, web.Response) or response.content_type != _JSON or asked.lower() in ("false", "0"):
        return
    body = response.body.joined() if isinstance(response.body, ChunkedAnswer) else response.body
    if isinstance(body, bytes):
        if len(body) < LARGE_BYTES:
            response.body = msgspec.json.format(body, indent=2)
        else:
            response.body = await context.large.run(Turn(user), msgspec.json.format, body, indent=2)


async def one(
    context: ServerContext, code: int, found: Obj | Record, call: Call, form: Form, include: str = ""
) -> web.Response:
    resource = call.resource
    if form.shape == "object":
        if isinstance(found, Record):
            return await _said(context, code, await codec.line(context, call, found), form, call)
        return await _said(context, code, found, form, call)
    obj = await codec.shown(context, call, found) if isinstance(found, Record) else found
    if form.shape == "partial":
        return await _said(context, code, partial(obj, form.version), form, call)
    version = obj["metadata"].get("resourceVersion", "")
    return await _said(
        context, code, _table(context, resource, [obj], form, include, {"resourceVersion": version}), form, call
    )


async def listed(context: ServerContext, found: Listed, call: Call, form: Form, include: str = "") -> web.Response:
    resource = call.resource
    metadata: Obj = {"resourceVersion": str(found.revision)}
    if found.continues:
        metadata["continue"] = found.continues
    if found.remaining is not None:
        metadata["remainingItemCount"] = found.remaining
    if form.shape == "object":
        return await _long(context, await _list_parts(context, call, found.records, metadata), form, call)
    if form.shape == "table" and len(found.records) > _ROWS and printer_of(resource, "").order is None:
        return await _long(
            context, await _table_parts(context, found.records, call, form, include, metadata), form, call
        )
    objs = await codec.all_shown(context, call, found.records)
    if form.shape == "table":
        return await _said(context, 200, _table(context, resource, objs, form, include, metadata), form, call)
    return await _said(context, 200, partial_list(objs, metadata, form.version), form, call)


async def _long(context: ServerContext, parts: Items | list[Part], form: Form, call: Call) -> web.Response:
    size = parts.size if isinstance(parts, Items) else sum(map(len, parts))
    if size < AT_LEAST or form.is_yaml:
        return await _said(context, 200, b"".join(parts), form, call)
    return _warned(web.Response(body=ChunkedAnswer(parts, size, _JSON)), call)


async def row(context: ServerContext, record: Record, call: Call, form: Form, include: str, *, first: bool) -> bytes:
    """One object of a watch as a table of one row (columns only in the first) or as metadata alone."""
    obj = await codec.shown(context, call, record)
    if form.shape == "partial":
        return _encode(partial(obj, form.version))
    version = {"resourceVersion": str(record.revision)}
    return _encode(_table(context, call.resource, [obj], form, include, version, has_heads=first))


def _table(
    context: ServerContext,
    resource: Resource,
    objs: Sequence[Obj],
    form: Form,
    include: str,
    metadata: Obj,
    *,
    has_heads: bool = True,
) -> Obj:
    return table(
        resource,
        objs,
        now_s=int(context.clock.seconds()),
        include=include_of(include),
        list_meta=metadata,
        version=form.version,
        has_heads=has_heads,
    )


async def _list_parts(
    context: ServerContext, call: Call, records: Sequence[Record], metadata: Obj
) -> Items | list[Part]:
    resource = call.resource
    kind = resource.list_kind or f"{resource.kind}List"
    head = f'{{"kind":"{kind}","apiVersion":"{resource.api_version}","metadata":'.encode()
    parts: list[Part] = [head, _encode(metadata), b',"items":[']
    if not all(codec.is_ready(context, record, resource) for record in records):
        for data in await codec.lines(context, call, records):
            parts += (data, b",")
    else:
        opening = b"" if resource.is_custom else codec.prefix_of(resource)
        found = [record.data for record in records]
        if all(data.startswith(opening) for data in found):
            return Items(b"".join(parts), found, opening)
        for data in found:
            parts += (*codec.item_parts(data, opening), b",")
    if records:
        parts.pop()
    parts.append(b"]}\n")
    return parts


async def _table_parts(
    context: ServerContext, records: Sequence[Record], call: Call, form: Form, include: str, metadata: Obj
) -> list[Part]:
    """A long table, made some rows at a time: decoded, ten thousand pods are more than everything else there is."""
    parts: list[Part] = []
    for start in range(0, len(records), _ROWS):
        objs = await codec.all_shown(context, call, records[start : start + _ROWS])
        made = _table(context, call.resource, objs, form, include, metadata, has_heads=not start)
        rows = made.pop("rows")
        if not start:
            parts.append(_encode(made)[:-1] + b',"rows":[')
        parts += (_encode(rows)[1:-1], b",")
        await asyncio.sleep(0)
    parts[-1] = b"]}\n"
    return parts

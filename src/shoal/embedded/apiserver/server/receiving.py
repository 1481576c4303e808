"""Bodies on their way in: bounded, decoded by their content type."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.bodies.decode import decode
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.large_work import LARGE_BYTES
from shoal.embedded.apiserver.rest.context import ServerContext, computed
from shoal.embedded.apiserver.rest.patch_text import read_patch
from shoal.embedded.apiserver.rest.patching import PatchType

LARGEST_BODY = 3 * 1024 * 1024
BODY_S = 30.0
"""From the headers of a request to the end of its body."""


def size_to_come(request: web.BaseRequest) -> int:
    """Bytes of the body at most; those that are larger are refused."""
    length = request.content_length
    return LARGEST_BODY if length is None else min(length, LARGEST_BODY)


async def body_bytes(request: web.BaseRequest, patience_s: float = BODY_S) -> bytes:
    if request.content_length is not None and request.content_length > LARGEST_BODY:
        raise status.too_large(LARGEST_BODY)
    try:
        if request.content.is_eof():
            return await request.read()
        async with asyncio.timeout(patience_s):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise status.too_large(LARGEST_BODY) from None
    except (HttpProcessingError, RequestPayloadError):
        raise status.bad_request(
            "the body of the request does not end as its headers say, or is not encoded so"
        ) from None
    except TimeoutError:
        words = f"the body of the request did not arrive within {patience_s:.0f}s"
        raise status.ApiError(408, "Timeout", words) from None


_MASTERS = "system:masters"
"""Exempt from limits, as in Kubernetes' flow control."""


async def body_object(
    context: ServerContext,
    request: web.BaseRequest,
    call: Call,
    *,
    kind: str = "",
    find_duplicates: bool,
    may_be_empty: bool = False,
) -> tuple[Any, list[str]]:
    """The object of a body, and the fields that it names twice. A body that may be left out is None then."""
    body = await body_bytes(request)
    if not body and may_be_empty:
        return None, []
    media = request.headers.get("Content-Type", "")
    _note_size(context, call, len(body))
    return await computed(context, call, decode, body, media, kind=kind, with_duplicates=find_duplicates)


async def body_patch(
    context: ServerContext, request: web.BaseRequest, call: Call, how: PatchType
) -> tuple[Any, list[str]]:
    """The patch of a body, and what strict reading has against it."""
    body = await body_bytes(request)
    _note_size(context, call, len(body))
    patch, problems = await computed(context, call, read_patch, body, how, call.validation)
    if how == "json" and _copies(patch):
        # A few operations that copy can make megabytes of an object of any size.
        call.size = max(call.size, LARGE_BYTES)
    return patch, problems


def _copies(patch: Any) -> bool:
    return isinstance(patch, list) and any(isinstance(one, dict) and one.get("op") == "copy" for one in patch)


def _note_size(context: ServerContext, call: Call, size: int) -> None:
    call.size = size
    if size >= LARGE_BYTES and _MASTERS not in call.actor.groups:
        context.large.check(call.actor.name)

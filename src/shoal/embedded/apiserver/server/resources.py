"""Requests on resources: from the verb to the operation, and its result to an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec
from aiohttp import web

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest import reading
from shoal.embedded.apiserver.rest.context import ServerContext, computed
from shoal.embedded.apiserver.rest.creating import create
from shoal.embedded.apiserver.rest.deleting import DeleteOptions, delete, delete_all, delete_options
from shoal.embedded.apiserver.rest.incoming import accepted, at_home, still_at_home
from shoal.embedded.apiserver.rest.options import ReadOptions, read_options
from shoal.embedded.apiserver.rest.patching import PATCH_TYPES, patch
from shoal.embedded.apiserver.rest.replacing import replace
from shoal.embedded.apiserver.rest.scaling import SCALE
from shoal.embedded.apiserver.rest.selection import selection
from shoal.embedded.apiserver.rest.subresources import finalize
from shoal.embedded.apiserver.server import answers, component_statuses
from shoal.embedded.apiserver.server.accept import PLAIN, Form, form_of
from shoal.embedded.apiserver.server.receiving import body_object, body_patch
from shoal.embedded.apiserver.server.scales import Scales
from shoal.embedded.apiserver.server.streaming import OpenStreams, stream_watch
from shoal.embedded.apiserver.server.subresource_bodies import SubresourceBodies
from shoal.embedded.apiserver.server.virtual import Virtual
from shoal.embedded.apiserver.state.record import Record

_GET_SUBRESOURCES = ("status", "ephemeralcontainers", "resize", "approval", "finalize")
_REPLACED_BY: Mapping[tuple[str, str, str], Callable[[ServerContext, Call, Obj], Awaitable[Obj | Record]]] = {
    ("", "namespaces", "finalize"): finalize
}
"""What a replacement behind a door comes to, where it is another than of the whole object."""

_MOST_VIRTUAL_BYTES = 64 * 1024
"""Of a review, a token request, an eviction: they are read and answered on the event loop, and have little to say."""
_KUBECTL_PAGE, _TABLE_PAGE = 500, 10_000
"""kubectl asks for 500 rows at a time, and for no more than five pages a second: ten thousand pods would take two
seconds of waiting alone. A server need not heed limits; rows are small and made piece by piece."""


class ResourceHandlers:
    def __init__(
        self,
        context: ServerContext,
        virtual: Mapping[tuple[str, str, str], Virtual],
        spoken: SubresourceBodies,
        streams: OpenStreams,
    ) -> None:
        self._context = context
        self._spoken = spoken
        self._virtual = virtual
        self._scales = Scales(context, spoken)
        self.streams = streams

    async def serve(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        context, verb = self._context, call.verb
        if verb == "create":
            return await self._create(request, call)
        if verb == "get":
            return await self._get(request, call)
        if verb == "patch":
            return await self._patch(request, call)
        if verb == "update":
            return await self._update(request, call)
        if verb == "list":
            return await self._list(request, call, read_options(request.query))
        if verb == "watch":
            form = form_of(request.headers.get("Accept", ""), streams=True)
            return await stream_watch(context, self.streams, request, call, _watch_options(request), form)
        if verb == "delete":
            return await self._delete(request, call)
        return await self._delete_all(request, call)

    # -- reads ------------------------------------------------------------------------------------------------------

    async def _get(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        form = form_of(request.headers.get("Accept", ""))
        if call.resource.home == component_statuses.HOME:
            return answers.answer(200, component_statuses.shown(call.resource, call.name, form), form, call)
        if call.subresource == SCALE:
            return await answers.one(self._context, 200, await self._scales.read(call), call, form)
        if call.subresource and call.subresource not in _GET_SUBRESOURCES:
            raise status.method_not_supported(call.resource.plural, call.resource.group)
        version = request.query.get("resourceVersion", "")
        if version:
            reading.check_revision(self._context, version)
        found = reading.get(self._context, call)
        return await answers.one(self._context, 200, found, call, form, request.query.get("includeObject", ""))

    async def _list(self, request: web.BaseRequest, call: Call, options: ReadOptions) -> web.StreamResponse:
        form = form_of(request.headers.get("Accept", ""), streams=True)
        if call.resource.home == component_statuses.HOME:
            return answers.answer(200, component_statuses.shown(call.resource, "", form), form, call)
        if form.shape == "table" and _KUBECTL_PAGE <= options.limit < _TABLE_PAGE:
            options = msgspec.structs.replace(options, limit=_TABLE_PAGE)
        found = reading.list_(self._context, call, options)
        return await answers.listed(self._context, found, call, form, request.query.get("includeObject", ""))

    # -- writes -----------------------------------------------------------------------------------------------------

    async def _create(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        form = _object_form(request)
        body, duplicates = await body_object(
            self._context, request, call, kind=call.resource.kind, find_duplicates=call.validation != "Ignore"
        )
        act = self._virtual.get(_door(call))
        if act is not None:
            if call.size > _MOST_VIRTUAL_BYTES:
                raise status.too_large(_MOST_VIRTUAL_BYTES)
            obj = self._spoken.read(call, body, duplicates)
            at_home(call, obj)
            return answers.answer(201, await act(call, obj), form, call)
        if call.subresource or call.name:
            raise status.method_not_supported(call.resource.plural, call.resource.group)
        obj = await computed(self._context, call, accepted, call, body, duplicates)
        found = await create(self._context, call, obj, _options(request, "CreateOptions"))
        return await answers.one(self._context, 201, found, call, form)

    async def _update(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        form = _object_form(request)
        body, duplicates = await body_object(
            self._context, request, call, kind=call.resource.kind, find_duplicates=call.validation != "Ignore"
        )
        if call.subresource == SCALE:
            scale = await self._scales.replace(call, body, duplicates)
            return await answers.one(self._context, 200, scale, call, form)
        obj = await computed(self._context, call, accepted, call, body, duplicates)
        still_at_home(call, obj)
        act = _REPLACED_BY.get(_door(call))
        if act is not None:
            return await answers.one(self._context, 200, await act(self._context, call, obj), call, form)
        found, is_new = await replace(self._context, call, obj)
        return await answers.one(self._context, 201 if is_new else 200, found, call, form)

    async def _patch(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        form = _object_form(request)
        media = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        how = PATCH_TYPES.get(media)
        if how is None:
            raise status.unsupported_media_type("415: Unsupported Media Type")
        _check_patch_options(request, how)
        body, duplicates = await body_patch(self._context, request, call, how)
        if call.subresource == SCALE:
            scale = await self._scales.patch(call, how, body, duplicates)
            return await answers.one(self._context, 200, scale, call, form)
        found, is_new = await patch(self._context, call, how, body, duplicates, _options(request, "PatchOptions"))
        return await answers.one(self._context, 201 if is_new else 200, found, call, form)

    async def _delete(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        form = _object_form(request)
        if call.subresource:
            raise status.method_not_supported(call.resource.plural, call.resource.group)
        options = await _delete_options(self._context, request, call)
        if fault := call.resource.strategy.deletion_fault(call.name):
            raise status.forbidden(call.resource.plural, call.resource.group, call.name, fault)
        found, is_gone = await delete(self._context, call, options)
        if not is_gone or call.resource.strategy.returns_deleted:
            return await answers.one(self._context, 200, found, call, form)
        uid = found.uid if isinstance(found, Record) else found["metadata"]["uid"]
        details = {"name": call.name, "kind": call.resource.plural, "uid": uid}
        if call.resource.group:
            details["group"] = call.resource.group
        return answers.answer(200, status.success(details), form, call)

    async def _delete_all(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        form = _object_form(request)
        options = await _delete_options(self._context, request, call)
        asked = read_options(request.query)
        chosen = selection(call.resource, asked.label_selector, asked.field_selector)
        listed = reading.list_(self._context, call, asked)
        await delete_all(self._context, call, chosen, options)
        return await answers.listed(self._context, listed, call, form)


def _door(call: Call) -> tuple[str, str, str]:
    return (*call.resource.home, call.subresource)


def _object_form(request: web.BaseRequest) -> Form:
    """The form of a write's answer: objects; tables of a write are rarely requested but served all the same."""
    accept = request.headers.get("Accept", "")
    return form_of(accept) if accept else PLAIN


def _options(request: web.BaseRequest, kind: str) -> Obj:
    options: Obj = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    query = request.query
    for name in ("fieldManager", "fieldValidation"):
        if query.get(name):
            options[name] = query[name]
    if query.get("dryRun"):
        options["dryRun"] = [query["dryRun"]]
    return options


def _watch_options(request: web.BaseRequest) -> ReadOptions:
    options = read_options(request.query)
    return options if options.is_watch else msgspec.structs.replace(options, is_watch=True)


def _check_patch_options(request: web.BaseRequest, how: str) -> None:
    query = request.query
    if how == "apply":
        if not query.get("fieldManager"):
            words = 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
            cause = {"reason": "FieldValueRequired", "message": "Required value: is required for apply patch"}
            details = {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [{**cause, "field": "fieldManager"}]}
            raise status.ApiError(422, "Invalid", words, details=details)
    elif "force" in query:
        words = 'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'
        cause = {"reason": "FieldValueForbidden", "message": "Forbidden: may not be specified for non-apply patch"}
        details = {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [{**cause, "field": "force"}]}
        raise status.ApiError(422, "Invalid", words, details=details)


async def _delete_options(context: ServerContext, request: web.BaseRequest, call: Call) -> DeleteOptions:
    body, _ = await body_object(context, request, call, find_duplicates=False, may_be_empty=True)
    given = dict(body) if isinstance(body, dict) else {}
    if given.get("kind", "DeleteOptions") != "DeleteOptions":
        raise status.bad_request("decoded object cannot be converted to DeleteOptions")
    query = request.query
    if not given:
        if query.get("gracePeriodSeconds"):
            try:
                given["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
            except ValueError:
                words = f'strconv.ParseInt: parsing "{query["gracePeriodSeconds"]}": invalid syntax'
                raise status.bad_request(words) from None
        if query.get("propagationPolicy"):
            given["propagationPolicy"] = query["propagationPolicy"]
        if query.get("orphanDependents"):
            given["orphanDependents"] = query["orphanDependents"] not in ("false", "0")
    options = delete_options(given)
    call.dry_run = call.dry_run or bool(options.dry_run)
    return options

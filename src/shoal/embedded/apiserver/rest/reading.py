"""Get and list: what is stored, in the version that is asked for, as of one revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.continues import Position, position_of, token
from shoal.embedded.apiserver.rest.options import ReadOptions
from shoal.embedded.apiserver.rest.selection import Selection, selection
from shoal.embedded.apiserver.state.record import Record

_NOW = -1
"""In place of the revision of a token: whatever is the newest."""
_SCAN = 500
"""Records looked at per step when a selector thins them out."""
_LONGEST = 19
"""Digits of a revision."""


class Listed(msgspec.Struct):
    records: Sequence[Record]
    revision: int
    continues: str = ""
    remaining: int | None = None


def get(context: ServerContext, call: Call) -> Record:
    record = context.state.get(call.resource.ref(call.namespace, call.name))
    if record is None:
        raise status.not_found(call.resource.plural, call.resource.group, call.name)
    return record


def list_(context: ServerContext, call: Call, options: ReadOptions) -> Listed:
    chosen = selection(call.resource, options.label_selector, options.field_selector)
    namespace = call.namespace if call.resource.namespaced and call.namespace else None
    at, after = _place(context, options)
    try:
        if options.limit:
            return _page(context, call, options.limit, chosen, namespace, at, after)
        page = context.state.list(call.resource.home, namespace, at=at, after=after)
    except status.ApiError as error:
        if error.code != 410 or after is None:
            raise
        raise _expired_page(after) from None
    return Listed(_thinned(page.records, chosen), page.revision)


def _expired_page(after: tuple[str, str]) -> status.ApiError:
    """The moment that a list showed is forgotten; the token that comes with this goes on with what there is now."""
    error = status.expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. "
        "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
        "deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.continues = token(Position(_NOW, *after))
    return error


def revision_of(text: str) -> int:
    """The revision a client names, whether it has been or not."""
    return _revision(text, status.bad_request, "")


def _revision(text: str, refused: Callable[[str], status.ApiError], lead: str) -> int:
    is_number = text.isascii() and text.isdecimal()
    if is_number and len(text) <= _LONGEST:
        return int(text)
    why = "value out of range" if is_number else "invalid syntax"
    raise refused(f'{lead}resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}')


def check_revision(context: ServerContext, text: str) -> None:
    """Of a single object: Kubernetes does not take a word for a bad request there."""
    _check_past(context, _revision(text, lambda words: status.ApiError(500, "", words), ""))


def wanted_revision(context: ServerContext, text: str) -> int:
    """The revision a client names for a list; it must have been."""
    wanted = _revision(text, status.bad_request, "invalid resource version: ")
    _check_past(context, wanted)
    return wanted


def _check_past(context: ServerContext, wanted: int) -> None:
    if wanted > context.state.revision:
        raise status.from_the_future(wanted, context.state.revision)


def _place(context: ServerContext, options: ReadOptions) -> tuple[int | None, tuple[str, str] | None]:
    if options.continues:
        position = position_of(options.continues)
        if options.resource_version and options.resource_version != "0":
            raise status.bad_request("specifying resource version is not allowed when using continue")
        at = None if position.revision == _NOW else position.revision
        return at, (position.namespace, position.name)
    if not options.resource_version:
        return None, None
    wanted = wanted_revision(context, options.resource_version)
    exact = options.match == "Exact" or (options.limit and not options.match and wanted)
    return (wanted if exact else None), None


def _thinned(records: Sequence[Record], chosen: Selection) -> Sequence[Record]:
    if chosen.is_everything():
        return records
    return [record for record in records if chosen.selects(record)]


def _page(
    context: ServerContext,
    call: Call,
    limit: int,
    chosen: Selection,
    namespace: str | None,
    at: int | None,
    after: tuple[str, str] | None,
) -> Listed:
    home, found = call.resource.home, list[Record]()
    everything = chosen.is_everything()
    while True:
        wanted = limit - len(found) if everything else _SCAN
        page = context.state.list(home, namespace, at=at, after=after, limit=wanted)
        at = page.revision
        for index, record in enumerate(page.records):
            if not everything and not chosen.selects(record):
                continue
            found.append(record)
            if len(found) == limit:
                left = page.remaining + len(page.records) - index - 1
                return _full(found, at, left or 0, everything)
        if not page.remaining:
            return Listed(found, at)
        last = page.records[-1].ref
        after = (last.namespace, last.name)


def _full(found: list[Record], revision: int, left: int, everything: bool) -> Listed:
    if not left:
        return Listed(found, revision)
    last = found[-1].ref
    position = token(Position(revision, last.namespace, last.name))
    return Listed(found, revision, position, left if everything else None)

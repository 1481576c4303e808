"""Change what is stored: update, patch and apply all end here, as "this object instead of that one".

A change is worked out on what is stored now and committed only if that is still what is stored. When no webhook has to
be asked, all of it happens under the object's lock, so writers of one object never make each other start over. Policies
compute in this process and are asked under the lock too.

Two kinds of changes are worked out without the lock: those for which webhooks are configured, which may write to the
same object themselves, and large ones, since the worker thread may be busy with others. A change that was overtaken is
worked out again, and refused there if it names the version it was meant for. A large change that was overtaken in each
of its tries is worked out once more under the lock, so that frequent small writes cannot starve it: other writers of
this one object wait that long. One that asks webhooks is refused with a conflict then.
Whether webhooks are called is decided once for each try: a new one is called for the next try.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.apply.tracking import keep_times, track
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.kinds.metadata import check_metadata_update
from shoal.embedded.apiserver.kinds.subresources import DOORS
from shoal.embedded.apiserver.large_work import LARGE_BYTES
from shoal.embedded.apiserver.resource import Obj, Ref
from shoal.embedded.apiserver.rest import codec
from shoal.embedded.apiserver.rest.addresses import ALLOCATION, give_addresses, may_need_others
from shoal.embedded.apiserver.rest.context import ServerContext, computed
from shoal.embedded.apiserver.rest.ownership import elsewhere, reset_by, tracked_as
from shoal.embedded.apiserver.rest.quota_status import commit_charged, object_lock
from shoal.embedded.apiserver.schema.zeros import fill
from shoal.embedded.apiserver.state.record import Record, Write
from shoal.embedded.apiserver.strategy import Strategy

Make = Callable[[Obj], Awaitable[Obj]]
"""The wanted object, from the present one (its own copy). It is called once for each try, and what it returned is
changed after that, so it returns another object each time."""

_TRIES = 5
_KEPT = ("uid", "creationTimestamp", "selfLink", "generation")
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
"""Kept where they are left out; what else is sent in them is refused."""


async def change(context: ServerContext, call: Call, make: Make, *, applied: bool = False) -> Obj | Record:
    """Replace the object named by the call by what `make` makes of it; NotFound if it is not there."""
    ref = call.resource.ref(call.namespace, call.name)
    if _is_short(context, call, context.state.get(ref)):
        async with object_lock(context, ref):
            # While the lock was waited for, the object may have grown, or a webhook may have been configured.
            if _is_short(context, call, context.state.get(ref)):
                return await _changed_under_lock(context, call, make, applied)
    reported = len(call.warnings)
    for _ in range(_TRIES):
        # What an overtaken try warned of does not count.
        del call.warnings[reported:]
        work = _Work(_present(context, call, ref), call, is_dynamic=context.dynamic.concerns(call, "UPDATE"))
        await _work_out(context, work, make, applied)
        if not (work.is_same or call.dry_run):
            work.kept = await codec.checked(context, call, work.new)
        async with object_lock(context, ref):
            if context.state.get(ref) is work.record:
                return await _committed(context, work)
    del call.warnings[reported:]
    async with object_lock(context, ref):
        if _asks_webhooks(context, call):
            raise status.conflict(call.resource.plural, call.resource.group, call.name)
        return await _changed_under_lock(context, call, make, applied)


async def _changed_under_lock(context: ServerContext, call: Call, make: Make, applied: bool) -> Obj | Record:
    """One try, which no other writer can overtake. The caller holds the object's lock."""
    record = _present(context, call, call.resource.ref(call.namespace, call.name))
    work = _Work(record, call, is_dynamic=context.dynamic.concerns(call, "UPDATE"))
    await _work_out(context, work, make, applied)
    return await _committed(context, work)


def _is_short(context: ServerContext, call: Call, record: Record | None) -> bool:
    """Whether a change of this object waits neither for a webhook nor for the worker thread."""
    is_small = call.size < LARGE_BYTES and (record is None or len(record.data) < LARGE_BYTES)
    return is_small and not _asks_webhooks(context, call)


def _asks_webhooks(context: ServerContext, call: Call) -> bool:
    return call.resource.conversion_webhook is not None or context.dynamic.asks_webhooks(call, "UPDATE")


def _present(context: ServerContext, call: Call, ref: Ref) -> Record:
    record = context.state.get(ref)
    if record is None:
        raise status.not_found(call.resource.plural, call.resource.group, call.name)
    return record


class _Work:
    """A change that is worked out: what is there, what it looked like, what shall be there."""

    __slots__ = ("admission", "is_dynamic", "is_gone", "is_same", "kept", "new", "old", "record")

    def __init__(self, record: Record, call: Call, *, is_dynamic: bool) -> None:
        self.record = record
        self.is_dynamic = is_dynamic
        self.old: Obj = {}
        self.new: Obj = {}
        self.admission = AdmissionAttributes("UPDATE", call, call.name, self.new, self.old)
        self.kept: Obj | None = None
        """As it will be stored, where that was worked out before the lock was taken."""
        self.is_same = False
        self.is_gone = False


async def _work_out(context: ServerContext, work: _Work, make: Make, applied: bool) -> None:
    call = work.admission.call
    # A short patch of a large object costs as much as the object.
    call.size = max(call.size, len(work.record.data))
    work.old = old = await _shown(context, work)
    made = await make(await _shown(context, work))
    work.new = new = await computed(context, call, codec.as_read_back, context, made, call.resource)
    work.admission.obj, work.admission.old = new, old
    metadata, before = new["metadata"], old["metadata"]
    _check_version(call, metadata, before)
    for name in _KEPT:
        if name == "uid" and metadata.get(name):
            continue
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)
    is_ignored = "metadata.deletionTimestamp" in reset_by(call)
    for name in _DELETION:
        if is_ignored or metadata.get(name) is None:
            metadata.pop(name, None)
            if name in before:
                metadata[name] = before[name]
    metadata["resourceVersion"] = before["resourceVersion"]
    await _admitted(context, work, applied)
    await computed(context, call, _finish, work)
    if not work.is_same:
        await computed(context, call, _validate, call, work.new, old)
        context.plugins.validate(work.admission)
        if work.is_dynamic:
            await context.dynamic.validate(work.admission)


async def _shown(context: ServerContext, work: _Work) -> Obj:
    call = work.admission.call
    if codec.is_ready(context, work.record, call.resource):
        return await computed(context, call, work.record.obj)
    return await codec.shown(context, call, work.record)


def _check_version(call: Call, metadata: Obj, before: Obj) -> None:
    resource = call.resource
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != before["uid"] and call.verb == "update":
        # Not of a patch, which has no preconditions: there it is a change of a field, and refused with the others.
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}"
        raise status.conflict(resource.plural, resource.group, call.name, why)
    if version and version not in ("0", before["resourceVersion"]):
        if not str(version).isdecimal():
            raise status.ApiError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        raise status.conflict(resource.plural, resource.group, call.name)


async def _admitted(context: ServerContext, work: _Work, applied: bool) -> None:
    call = work.admission.call
    await computed(context, call, _complete, context, work, applied)
    context.plugins.mutate(work.admission)
    if work.is_dynamic:
        await context.dynamic.mutate(work.admission)
        await computed(context, call, call.resource.strategy.default, work.admission.written)
    work.new = work.admission.written


def _complete(context: ServerContext, work: _Work, applied: bool) -> None:
    call = work.admission.call
    call.resource.strategy.default(work.new)
    fill(work.new, call.resource.schema)
    if not applied:
        # Before admission: what the API adds belongs to no manager.
        track(
            work.new,
            work.old,
            manager=call.field_manager,
            api_version=call.resource.api_version,
            now=context.clock.text(),
            schema=call.resource.schema,
            subresource=tracked_as(call),
            reset=reset_by(call),
            elsewhere=elsewhere(context.catalog, call.resource),
        )


def _finish(work: _Work) -> None:
    """What the writer may not touch, the generation, who owns what, and whether anything is left to write."""
    call, new, old = work.admission.call, work.new, work.old
    strategy = call.resource.strategy
    if call.subresource == "status":
        strategy.prepare_status(new, old)
    else:
        _behind_door(call).prepare_update(new, old)
    fill(new, call.resource.schema)
    if call.subresource != "status" and strategy.counts_generation and strategy.generation_changed(new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    keep_times(new, old)
    metadata = new["metadata"]
    if not metadata.get("finalizers"):
        metadata.pop("finalizers", None)
    work.is_same = new == old
    work.is_gone = (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not strategy.is_held(new)
    )


def _behind_door(call: Call) -> Strategy:
    """The behaviour behind the door that the writer came through."""
    if not call.subresource:
        return call.resource.strategy
    return DOORS.get((*call.resource.home, call.subresource), call.resource.strategy)


def _validate(call: Call, new: Obj, old: Obj) -> None:
    resource = call.resource
    strategy = resource.strategy
    # Kubernetes checks metadata for every kind and once more with the kind, and gives each cause twice.
    errors: list[FieldError] = check_metadata_update(new, old, short_finalizers=resource.is_custom) * 2
    if call.subresource == "status":
        errors += strategy.validate_status(new, old)
    else:
        errors += _behind_door(call).validate_update(new, old)
    if errors:
        raise status.invalid(resource.kind, resource.home.group, call.name, errors)
    if call.subresource != "status":
        call.warnings.extend(strategy.warnings(new, old))


async def _committed(context: ServerContext, work: _Work) -> Obj | Record:
    """Store the change under the lock that the caller holds."""
    if work.is_same and not work.is_gone:
        return work.record
    if work.is_gone or not may_need_others(work.admission.call.resource, work.new, work.old):
        return await _stored(context, work)
    async with context.state.lock(ALLOCATION):
        give_addresses(context, work.new, work.old)
        work.kept = await codec.to_stored(context, work.new, work.admission.call.resource)
        return await _stored(context, work)


async def _stored(context: ServerContext, work: _Work) -> Obj | Record:
    call, resource = work.admission.call, work.admission.call.resource
    if call.dry_run:
        context.quotas.charges(work.admission, gone=work.is_gone)
        return work.new
    kept = work.kept or await codec.checked(context, call, work.new)
    metadata = work.new["metadata"]
    write = Write(
        work.record.ref,
        None if work.is_gone else kept,
        work.record,
        work.record.uid,
        metadata.get("labels") or {},
        resource.strategy.fields(work.new),
    )

    def check() -> None:
        """The last look before the commit: a definition may have changed since its object was worked out."""
        if write.obj is not None:
            codec.as_defined(context, write.obj, resource)

    records = await commit_charged(context, work.admission, [write], check, gone=work.is_gone)
    return work.new if work.is_gone else records[0]

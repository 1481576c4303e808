"""Delete: at once, or marked and left to finalizers and to graceful termination."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec

from shoal.embedded.apiserver import field_errors, status
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest import codec
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.quota_status import commit_charged, object_lock
from shoal.embedded.apiserver.rest.selection import Selection
from shoal.embedded.apiserver.state.record import Record, Write

_LATEST_S = 253_402_300_799
"""The last second of the year 9999."""
_AT_ONCE = 64
"""Deletions of many that share a commit."""
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Preconditions(msgspec.Struct, frozen=True, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, rename="camel"):
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    dry_run: list[str] | None = None


def delete_options(obj: object) -> DeleteOptions:
    try:
        options = msgspec.convert(obj or {}, DeleteOptions)
    except msgspec.ValidationError as error:
        raise status.bad_request(f"DeleteOptions cannot be read: {error}") from None
    grace = options.grace_period_seconds
    if grace is not None and not -(1 << 63) <= grace < 1 << 63:
        words = "json: cannot unmarshal number into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
        raise status.bad_request(words)
    errors = []
    policy = options.propagation_policy
    if policy is not None and policy not in ("Background", "Foreground", "Orphan"):
        supported = ("Foreground", "Background", "Orphan", "nil")
        errors.append(field_errors.not_supported("propagationPolicy", policy, supported))
    if policy is not None and options.orphan_dependents is not None:
        errors.append(
            field_errors.bad_value(
                "propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set"
            )
        )
    if options.dry_run and options.dry_run != ["All"]:
        errors.append(field_errors.not_supported("dryRun", options.dry_run[0], ("All",)))
    if errors:
        raise status.invalid("DeleteOptions", "meta.k8s.io", "", errors)
    return options


async def delete(
    context: ServerContext, call: Call, options: DeleteOptions, *, asks: bool = True
) -> tuple[Obj | Record, bool]:
    """What is left (the marked object) or was there, and whether it is gone.

    Webhooks and policies are not asked (`asks`) about a deletion that follows from what they were asked about.
    """
    ref = call.resource.ref(call.namespace, call.name)
    reported = len(call.warnings)
    while True:
        # What an overtaken try warned of does not count.
        del call.warnings[reported:]
        record = context.state.get(ref)
        if record is None:
            raise status.not_found(call.resource.plural, call.resource.group, call.name)
        obj = await codec.shown(context, call, record)
        check_preconditions(call, obj, options.preconditions)
        admission = AdmissionAttributes("DELETE", call, call.name, None, obj, msgspec.to_builtins(options))
        # There is nothing to change, but some plugins of the first round refuse deletions too.
        context.plugins.mutate(admission)
        context.plugins.validate(admission)
        if asks and context.dynamic.concerns(call, admission.operation):
            await context.dynamic.validate(admission)
        fate = _fate(context, call, obj, options)
        # Before the lock: a webhook that converts may write to the object itself.
        kept = await _kept(context, call, fate)
        async with object_lock(context, ref):
            if context.state.get(ref) is record:
                return await _done(context, call, record, fate, kept)


async def let_go(
    context: ServerContext, call: Call, record: Record, obj: Obj, options: DeleteOptions
) -> tuple[Obj | Record, bool]:
    """Delete an object whose lock the caller holds, without admission. `obj` is the caller's copy, and changed."""
    fate = _fate(context, call, obj, options)
    return await _done(context, call, record, fate, await _kept(context, call, fate))


async def delete_all(
    context: ServerContext, call: Call, chosen: Selection, options: DeleteOptions, *, asks: bool = True
) -> list[tuple[Obj | Record, bool]]:
    """Delete every object that is selected; those that others delete meanwhile do not matter."""
    namespace = call.namespace if call.resource.namespaced and call.namespace else None
    page = context.state.list(call.resource.home, namespace)
    meant = [record.ref for record in page.records if chosen.selects(record)]
    done = list[tuple[Obj | Record, bool]]()
    for start in range(0, len(meant), _AT_ONCE):
        calls = [
            msgspec.structs.replace(call, verb="delete", namespace=ref.namespace, name=ref.name, warnings=[])
            for ref in meant[start : start + _AT_ONCE]
        ]
        deletions = [delete(context, one, options, asks=asks) for one in calls]
        found_of_all = await asyncio.gather(*deletions, return_exceptions=True)
        call.warnings += [text for one in calls for text in one.warnings]
        for found in found_of_all:
            if not isinstance(found, BaseException):
                done.append(found)
            elif not (isinstance(found, status.ApiError) and found.code == 404):
                raise found
    return done


def check_preconditions(call: Call, obj: Obj, wanted: Preconditions | None) -> None:
    if wanted is None:
        return
    metadata, resource = obj["metadata"], call.resource
    if wanted.uid is not None and wanted.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise status.conflict(resource.kind, resource.group, call.name, why)
    if wanted.resource_version is not None and wanted.resource_version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({metadata['resourceVersion']}). The object might have been modified"
        )
        raise status.conflict(resource.kind, resource.group, call.name, why)


class _Fate(msgspec.Struct, frozen=True):
    """What a deletion comes to."""

    obj: Obj
    is_gone: bool
    is_changed: bool
    """Marked, or marked anew; a second deletion may change nothing."""


def _fate(context: ServerContext, call: Call, obj: Obj, options: DeleteOptions) -> _Fate:
    """The object is marked in place if its deletion has to wait."""
    resource, metadata = call.resource, obj["metadata"]
    is_counted = not resource.strategy.ends_when_empty
    was = (metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds") if is_counted else 0)
    finalizers = _finalizers(call, metadata.get("finalizers") or [], options)
    grace = resource.strategy.deletion_grace(obj, options.grace_period_seconds)
    if was[0] is not None and was[1] is not None:
        # A second deletion may only shorten what is left.
        grace = min(grace, was[1])
    waits = bool(finalizers) or grace > 0 or resource.strategy.is_held(obj)
    if not waits:
        if resource.strategy.is_graceful:
            _mark(context, metadata, was[0], 0)
        return _Fate(obj, True, True)
    if was[0] is not None and grace == was[1] and finalizers == (metadata.get("finalizers") or []):
        return _Fate(obj, False, False)
    if was[0] is None or grace != was[1]:
        _mark(context, metadata, was[0], grace)
    if not is_counted:
        metadata.pop("deletionGracePeriodSeconds")
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return _Fate(resource.strategy.with_deletion_begun(obj, context.clock.text()), False, True)


def _mark(context: ServerContext, metadata: Obj, marked: str | None, grace: int) -> None:
    """Say when the object is to be gone; the first deletion counts as a change of what is wanted."""
    metadata["deletionTimestamp"] = _later(context, grace)
    metadata["deletionGracePeriodSeconds"] = grace
    if marked is None and "generation" in metadata:
        metadata["generation"] += 1


async def _kept(context: ServerContext, call: Call, fate: _Fate) -> Obj | None:
    """What is left, as it is stored; None when nothing is, or nothing else than before."""
    return None if fate.is_gone or not fate.is_changed else await codec.to_stored(context, fate.obj, call.resource)


async def _done(
    context: ServerContext, call: Call, record: Record, fate: _Fate, kept: Obj | None
) -> tuple[Obj | Record, bool]:
    """Under the lock that the caller holds."""
    if fate.is_gone:
        if not call.dry_run:
            await _remove(context, call, record, fate.obj)
        return fate.obj, True
    if kept is None:
        return record, False
    if call.dry_run:
        return fate.obj, False
    codec.as_defined(context, kept, call.resource)
    labels = fate.obj["metadata"].get("labels") or {}
    fields = call.resource.strategy.fields(fate.obj)
    return (await context.state.commit([Write(record.ref, kept, record, record.uid, labels, fields)]))[0], False


def _finalizers(call: Call, present: list[str], options: DeleteOptions) -> list[str]:
    strategy, policy = call.resource.strategy, options.propagation_policy
    if policy is None and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if policy is None:
        if {ORPHAN, FOREGROUND} & set(present):
            return present
        policy = "Background"
        if strategy.orphans_by_default:
            policy = "Orphan"
            if strategy.orphaning_warning:
                call.warnings.append(strategy.orphaning_warning)
    kept = [one for one in present if one not in (ORPHAN, FOREGROUND)]
    if strategy.deletion_finalizer and strategy.deletion_finalizer not in kept:
        kept.append(strategy.deletion_finalizer)
    if policy == "Orphan":
        return [*kept, ORPHAN]
    if policy == "Foreground":
        return [*kept, FOREGROUND]
    return kept


def _later(context: ServerContext, seconds: int) -> str:
    instant = datetime.fromtimestamp(min(int(context.clock.seconds()) + seconds, _LATEST_S), UTC)
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


async def _remove(context: ServerContext, call: Call, record: Record, obj: Obj) -> None:
    """The object goes, and gives back what quotas counted for it."""
    admission = AdmissionAttributes("DELETE", call, call.name, None, obj)
    write = Write(record.ref, None, record, record.uid, record.labels, record.fields)
    await commit_charged(context, admission, [write], gone=True)

"""Create: one object, from what a client sent to what is durable.

The order of the steps is Kubernetes': defaults, admission that changes, what creators may not set, validation,
admission that only refuses, storage. Nothing is visible before it is durable.
"""

from __future__ import annotations

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from shoal.embedded.apiserver.apply.tracking import track
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.kinds.metadata import check_metadata
from shoal.embedded.apiserver.large_work import LARGE_BYTES
from shoal.embedded.apiserver.resource import Obj, Ref, Resource
from shoal.embedded.apiserver.rest import codec
from shoal.embedded.apiserver.rest.addresses import ALLOCATION, give_addresses, has_addresses
from shoal.embedded.apiserver.rest.context import ServerContext, computed
from shoal.embedded.apiserver.rest.incoming import at_home
from shoal.embedded.apiserver.rest.ownership import elsewhere, reset_by
from shoal.embedded.apiserver.rest.quota_status import commit_charged, object_lock
from shoal.embedded.apiserver.schema.zeros import fill, fill_part
from shoal.embedded.apiserver.state.record import Record, Write
from shoal.units.errors import BugError

_TRIES_OF_A_GENERATED_NAME = 8
_LONGEST_PREFIX = 58
"""Of a generated name, so that prefix and suffix fit a label."""
_SERVER_SETS = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


async def create(context: ServerContext, call: Call, obj: Obj, options: Obj | None = None) -> Obj | Record:
    """Create the object; of a dry run what would have been stored, else the record."""
    at_home(call, obj)
    obj = await computed(context, call, codec.as_read_back, context, obj, call.resource)
    metadata = obj["metadata"]
    generated = not metadata.get("name") and metadata.get("generateName", "")
    tries = _TRIES_OF_A_GENERATED_NAME if generated else 1
    for left in range(tries - 1, -1, -1):
        admission = AdmissionAttributes("CREATE", call, metadata.get("name", ""), obj, None, options or {})
        made = await prepared(context, admission)
        try:
            return await creation_of(context, admission, made)
        except status.ApiError as error:
            if error.reason != "AlreadyExists" or not left:
                raise
            obj = made
            metadata = obj["metadata"]
            metadata.pop("name")
    raise BugError("the last try of a generated name neither returned nor raised")


def _check_definition(context: ServerContext, call: Call, name: str) -> None:
    """While a definition goes, its objects go: none may join them. Nor may any be there without it."""
    group, plural = call.resource.home
    definition = context.state.reader.get("apiextensions.k8s.io", "customresourcedefinitions", "", f"{plural}.{group}")
    if definition is None:
        raise status.not_found(plural, group, call.name)
    if "deletionTimestamp" in definition["metadata"]:
        why = "create not allowed while custom resource definition is terminating"
        raise status.forbidden(plural, group, name, why)


async def prepared(context: ServerContext, admission: AdmissionAttributes, *, applied: bool = False) -> Obj:
    """All that happens to a new object before it is stored."""
    call, resource = admission.call, admission.call.resource
    if resource.is_custom:
        _check_definition(context, call, admission.written["metadata"].get("name", ""))
    is_dynamic = context.dynamic.concerns(call, admission.operation)
    await computed(context, call, _complete, context, admission, applied)
    context.plugins.mutate(admission)
    if is_dynamic:
        await context.dynamic.mutate(admission)
        await computed(context, call, resource.strategy.default, admission.written)
    obj = admission.written
    _name(context, admission, obj["metadata"])
    _set_by_server(context, obj, resource)
    await computed(context, call, _finish, call, obj, is_dynamic)
    context.plugins.validate(admission)
    if is_dynamic:
        await context.dynamic.validate(admission)
    return obj


def _complete(context: ServerContext, admission: AdmissionAttributes, applied: bool) -> None:
    call, resource = admission.call, admission.call.resource
    resource.strategy.default(admission.written)
    fill(admission.written, resource.schema)
    if not applied:
        # Before admission: what the API adds belongs to no manager.
        track(
            admission.written,
            None,
            manager=call.field_manager,
            api_version=resource.api_version,
            now=context.clock.text(),
            schema=resource.schema,
            reset=reset_by(call),
            elsewhere=elsewhere(context.catalog, call.resource),
        )


def _finish(call: Call, obj: Obj, is_dynamic: bool) -> None:
    resource = call.resource
    resource.strategy.prepare_create(obj)
    if is_dynamic:
        fill(obj, resource.schema)
    elif "status" in resource.schema.properties:
        # What built-in plugins add is complete; only the status was made anew.
        fill_part(obj, resource.schema, "status")
    _validate_new(resource, obj)
    call.warnings.extend(resource.strategy.warnings(obj, None))


def _name(context: ServerContext, admission: AdmissionAttributes, metadata: Obj) -> None:
    """Generated after webhooks were asked: they see the name that the client gave, or none."""
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_LONGEST_PREFIX] + context.new_suffix()
        admission.name = metadata["name"]


def _set_by_server(context: ServerContext, obj: Obj, resource: Resource) -> None:
    metadata = obj["metadata"]
    metadata["uid"] = context.new_uid()
    metadata["creationTimestamp"] = context.clock.text()
    for name in _SERVER_SETS:
        metadata.pop(name, None)
    if resource.strategy.counts_generation:
        metadata["generation"] = 1
    else:
        metadata.pop("generation", None)


def _validate_new(resource: Resource, obj: Obj) -> None:
    strategy, name = resource.strategy, obj["metadata"].get("name", "")
    errors = check_metadata(
        obj, namespaced=resource.namespaced, name_fault=strategy.name_fault, short_finalizers=resource.is_custom
    )
    errors += strategy.validate(obj)
    if errors:
        raise status.invalid(resource.kind, resource.home.group, name, errors)


async def creation_of(context: ServerContext, admission: AdmissionAttributes, obj: Obj) -> Obj | Record:
    """Store what was prepared."""
    call, resource = admission.call, admission.call.resource
    name = obj["metadata"]["name"]
    _check_unversioned(obj["metadata"])
    ref = resource.ref(call.namespace, name)
    if call.dry_run:
        if context.state.get(ref) is not None:
            raise status.already_exists(resource.plural, resource.group, name)
        if has_addresses(resource):
            give_addresses(context, obj)
        context.quotas.charges(admission)
        return obj
    # Checked before the locks: what is large waits for the worker.
    kept = await codec.checked(context, call, obj)
    # The object before its quotas, here and in changes: one order, so that writers never wait for each other in a ring.
    async with object_lock(context, ref):
        if context.state.get(ref) is not None:
            raise status.already_exists(resource.plural, resource.group, name)
        if not has_addresses(resource):
            return await _stored(context, admission, _write_of(ref, resource, obj, kept))
        async with context.state.lock(ALLOCATION):
            give_addresses(context, obj)
            kept = await codec.to_stored(context, obj, resource)
            return await _stored(context, admission, _write_of(ref, resource, obj, kept))


def _check_unversioned(metadata: Obj) -> None:
    """What is no version is passed over, as Kubernetes does; so is its answer, which is no bad request."""
    version = str(metadata.pop("resourceVersion", ""))
    if version.isdecimal() and version.strip("0"):
        raise status.ApiError(500, "", "resourceVersion should not be set on objects to be created")


def _write_of(ref: Ref, resource: Resource, obj: Obj, kept: Obj) -> Write:
    metadata = obj["metadata"]
    return Write(ref, kept, None, metadata["uid"], metadata.get("labels") or {}, resource.strategy.fields(obj))


async def _stored(context: ServerContext, admission: AdmissionAttributes, write: Write) -> Record:
    """With what comes with it and what it costs, in one commit."""
    writes = [write, *_default_objects(context, write.ref)]
    return (await commit_charged(context, admission, writes, lambda: _check_again(context, admission, write)))[0]


def _check_again(context: ServerContext, admission: AdmissionAttributes, write: Write) -> None:
    """The last look before the commit: a definition may have changed, or be going, since its object was prepared."""
    call = admission.call
    if call.size >= LARGE_BYTES and call.resource.namespaced:
        # To check a large object takes a while, in which its namespace may have been deleted.
        NamespaceLifecycle(context.state.reader).mutate(admission)
    if call.resource.is_custom and write.obj is not None:
        _check_definition(context, call, write.ref.name)
        codec.as_defined(context, write.obj, call.resource)


def _default_objects(context: ServerContext, ref: Ref) -> list[Write]:
    return [creation(context, one, obj) for one, obj in context.default_objects(ref) if context.state.get(one) is None]


def creation(context: ServerContext, ref: Ref, obj: Obj) -> Write:
    """An object of the server's own making, as it is first stored."""
    metadata = {**obj["metadata"], "uid": context.new_uid(), "creationTimestamp": context.clock.text()}
    stored = context.catalog.stored(ref.home)
    if stored is not None and stored.strategy.counts_generation:
        metadata["generation"] = 1
    kept = codec.ordered({**obj, "metadata": metadata})
    fields = stored.strategy.fields(kept) if stored is not None else {}
    return Write(ref, kept, None, metadata["uid"], metadata.get("labels") or {}, fields)

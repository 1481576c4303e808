"""Server-side apply as a request: of an object, and of what is not there yet.

What is applied is taken as it was sent. A null in it erases, an unknown field is refused with a message of its own, and
its type and name are taken as sent too: nothing is filled in from the path before it is merged. So conflicts are
reported before a name that is not that of the path.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.apply.applying import Applier, apply
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.foreign.provided import is_untouched, without_owner
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest import codec
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.context import ServerContext, computed
from shoal.embedded.apiserver.rest.creating import creation_of
from shoal.embedded.apiserver.rest.creating import prepared as prepared_creation
from shoal.embedded.apiserver.rest.incoming import accepted, at_home, unnamed
from shoal.embedded.apiserver.rest.ownership import elsewhere, reset_by, tracked_as
from shoal.embedded.apiserver.rest.rights import check_may_create
from shoal.embedded.apiserver.schema.go_values import json_kind
from shoal.embedded.apiserver.state.record import Record

_DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")


async def apply_object(
    context: ServerContext, call: Call, body: Any, problems: list[str], options: Obj | None
) -> tuple[Obj | Record, bool]:
    """The applied object, and whether it was created for that."""
    resource = call.resource
    config = configuration(call, body, problems, (resource.api_version, resource.kind))
    # So that the applier owns what is there afterwards, and takes away what he says no more.
    wanted = await computed(context, call, codec.as_read_back, context, config, resource)
    while True:
        present = context.state.get(resource.ref(call.namespace, call.name))
        if present is None:
            if call.subresource:
                raise status.not_found(resource.plural, resource.group, call.name)
            try:
                return await _created(context, call, wanted, options), True
            except status.ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
                continue

        async def make(live: Obj) -> Obj:
            return await computed(context, call, _merged, context, call, live, wanted)

        try:
            return await change(context, call, make, applied=True), False
        except status.ApiError as error:
            # Something else than the object may be what was not found.
            if error.code != 404 or context.state.get(present.ref) is present:
                raise


def configuration(call: Call, body: Any, problems: list[str], wanted: tuple[str, str]) -> Obj:
    """What was sent, once it is known to be of the kind that belongs here."""
    if body is not None and not isinstance(body, dict):
        raise status.bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{json_kind(body)} into Go value of type map[string]interface {{}}"
        )
    config = body or {}
    api_version, kind = config.get("apiVersion") or "/", config.get("kind") or ""
    if (api_version, kind) != wanted:
        shown = api_version if "/" in str(api_version) else f"/{api_version}"
        raise status.bad_request(f"invalid object type: {shown}, Kind={kind}")
    if problems and call.validation == "Strict":
        raise status.bad_request(f"error strict decoding YAML: {problems[0]}")
    if problems and call.validation == "Warn":
        call.warnings.extend(problems)
    if config.get("metadata") is None:
        config["metadata"] = {}
    return config


def _merged(context: ServerContext, call: Call, live: Obj | None, wanted: Obj) -> Obj:
    resource = call.resource
    if live is not None:
        resource.strategy.default(live)
        if resource.home == _DEFINITIONS and is_untouched(live):
            live = without_owner(live)
    applier = Applier(
        call.field_manager,
        resource.api_version,
        resource.schema,
        force=call.force,
        subresource=tracked_as(call),
        reset=reset_by(call),
        elsewhere=elsewhere(context.catalog, resource),
    )
    merged = _typed(call, apply(live, wanted, applier, now=context.clock.text()))
    at_home(call, merged, call.name)
    return merged


def _typed(call: Call, merged: Obj) -> Obj:
    """The merged object as one of its kind. Kubernetes answers 500 for a merge that leaves something else."""
    resource = call.resource
    name = (merged.get("metadata") or {}).get("name", "")
    try:
        return accepted(call, merged)
    except status.ApiError as error:
        lead = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        if resource.is_custom or not error.message.startswith(lead):
            raise
        shown = resource.api_version if resource.group else f"/{resource.version}"
        words = f"unable to convert unstructured object to {shown}, Kind={resource.kind}: "
        raise status.ApiError(
            500,
            "",
            f"failed to convert new object (/{name}; {shown}, Kind={resource.kind}) to proper version: "
            f"{words}{error.message.removeprefix(lead)}",
        ) from None


async def _created(context: ServerContext, call: Call, wanted: Obj, options: Obj | None) -> Obj | Record:
    """An apply of what is not there creates it, owned by the applier, who has to have the right to."""
    check_may_create(context, call)
    obj = await computed(context, call, _merged, context, call, None, wanted)
    if not wanted["metadata"].get("name"):
        raise unnamed(call)
    uid = wanted["metadata"].get("uid")
    if uid:
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status.conflict(call.resource.plural, call.resource.group, call.name, why)
    admission = AdmissionAttributes("CREATE", call, call.name, obj, None, options or {})
    return await creation_of(context, admission, await prepared_creation(context, admission, applied=True))

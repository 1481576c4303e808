"""Server-side apply as a request: of an object, of what is not there yet, and of a scale.

What is applied is taken as it was sent. A null in it erases, a field nobody knows is refused in words of its own, and
its type and name are its own business too: nothing is filled in from the path before it is looked at.

A scale is applied to the object behind it, as a configuration that says the replicas and nothing else. Rejected: making
a scale, applying to that and carrying the owners back, as Kubernetes does; both end with the same owners.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.cluster import status
from shoal.cluster.apply.applying import Applier, apply
from shoal.cluster.calls import Admission, Call
from shoal.cluster.resource import Obj
from shoal.cluster.rest import codec
from shoal.cluster.rest.changing import change
from shoal.cluster.rest.creating import creation_of
from shoal.cluster.rest.creating import prepared as prepared_creation
from shoal.cluster.rest.incoming import accepted, addressed, at_home, still_at_home
from shoal.cluster.rest.ownership import elsewhere, reset_by, tracked_as
from shoal.cluster.rest.rights import check_may_create
from shoal.cluster.rest.stage import Stage
from shoal.cluster.rest.subresources import put_replicas, scale_of
from shoal.cluster.schema.go_values import json_kind
from shoal.cluster.state.record import Record

_SCALE = ("autoscaling/v1", "Scale")


async def apply_object(
    stage: Stage, call: Call, body: Any, problems: list[str], options: Obj | None
) -> tuple[Obj | Record, bool]:
    """The applied object, and whether it was created for that."""
    resource = call.resource
    config = _configuration(call, body, problems, (resource.api_version, resource.kind))
    _check_address(call, config)
    is_named = isinstance(config["metadata"], dict) and bool(config["metadata"].get("name"))
    # So that the applier owns what is there afterwards, and takes away what he says no more.
    wanted = codec.as_read_back(stage, addressed(call, config), resource)
    while True:
        present = stage.state.get(resource.ref(call.namespace, call.name))
        if present is None:
            if call.subresource:
                raise status.not_found(resource.plural, resource.group, call.name)
            if not is_named:
                words = f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
                raise status.bad_request(words)
            try:
                return await _created(stage, call, wanted, options), True
            except status.ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
                continue

        async def make(live: Obj) -> Obj:
            return _merged(stage, call, live, wanted)

        try:
            return await change(stage, call, make, applied=True), False
        except status.ApiError as error:
            # Something else than the object may be what was not found.
            if error.code != 404 or stage.state.get(present.ref) is present:
                raise


async def apply_scale(stage: Stage, call: Call, body: Any, problems: list[str]) -> Obj:
    """The scale of the object whose replicas now are the configuration's, and owned by its manager."""
    config = _configuration(call, body, problems, _SCALE)
    _check_address(call, config)
    resource = call.resource
    said = addressed(call, config)["metadata"]
    metadata = {key: said[key] for key in ("name", "namespace", "uid", "resourceVersion") if said.get(key)}
    wanted: Obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    spec = config.get("spec")
    if isinstance(spec, dict) and spec.get("replicas") is not None:
        put_replicas(call, wanted, spec["replicas"])
    whole = msgspec.structs.replace(call, subresource="", verb="update", through_scale=True)

    async def make(live: Obj) -> Obj:
        return _merged(stage, whole, live, wanted)

    changed = await change(stage, whole, make, applied=True)
    if isinstance(changed, Record):
        changed = await codec.shown(stage, changed, resource)
    return scale_of(call, changed)


def _configuration(call: Call, body: Any, problems: list[str], wanted: tuple[str, str]) -> Obj:
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


def _check_address(call: Call, config: Obj) -> None:
    metadata = config["metadata"]
    if isinstance(metadata, dict) and metadata.get("name"):
        still_at_home(call, {"metadata": {**metadata}})


def _merged(stage: Stage, call: Call, live: Obj | None, wanted: Obj) -> Obj:
    resource = call.resource
    if live is not None:
        resource.strategy.default(live)
    applier = Applier(
        call.field_manager,
        resource.api_version,
        resource.schema,
        force=call.force,
        subresource=tracked_as(call),
        reset=reset_by(call),
        elsewhere=elsewhere(stage.catalog, resource),
    )
    merged = accepted(call, apply(live, wanted, applier, now=stage.clock.text()))
    at_home(call, merged, call.name)
    return merged


async def _created(stage: Stage, call: Call, wanted: Obj, options: Obj | None) -> Obj | Record:
    """An apply of what is not there creates it, owned by the applier, who has to have the right to."""
    check_may_create(stage, call)
    obj = _merged(stage, call, None, wanted)
    uid = wanted["metadata"].get("uid")
    if uid:
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status.conflict(call.resource.plural, call.resource.group, call.name, why)
    admission = Admission("CREATE", call, call.name, obj, None, options or {})
    return await creation_of(stage, admission, await prepared_creation(stage, admission, applied=True))

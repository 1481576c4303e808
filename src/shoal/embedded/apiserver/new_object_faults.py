"""Says what an API server would refuse about a new object, without a server and without other objects.

These are the checks of a create: metadata, types, and the validation of the kind, after its defaults. Kinds of other
projects are checked against the definitions that this server provides. Pod templates in them are checked as pods, as
the API server does when the controller of the project creates these. Admission, quotas and references to other objects
are not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from shoal.data.kubernetes_schemas import NEWEST
from shoal.embedded.apiserver.builtin import builtin_resources
from shoal.embedded.apiserver.crds.custom import CustomStrategy
from shoal.embedded.apiserver.crds.definition_strategy import DEFINITIONS
from shoal.embedded.apiserver.crds.pruning import conform_custom
from shoal.embedded.apiserver.crds.structural import schema_of
from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.foreign.definitions import definitions_of
from shoal.embedded.apiserver.foreign.tables import read_table
from shoal.embedded.apiserver.kinds.metadata import check_metadata
from shoal.embedded.apiserver.kinds.table import STRATEGIES
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.schema.decode import read
from shoal.embedded.apiserver.schema.go_values import UndecodableError
from shoal.embedded.apiserver.schema.kubernetes import published
from shoal.embedded.apiserver.schema.node import Schema
from shoal.embedded.apiserver.schema.zeros import fill
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
Kind = tuple[str, str, str]
"""Group, version and name."""
_SUFFIX = "00000"
"""In place of the random one of a generated name."""
_DEFINITION = ("apiextensions.k8s.io", "customresourcedefinitions")
_POD: Kind = ("", "v1", "Pod")
_JOB: Kind = ("batch", "v1", "Job")


class UnknownField(NamedTuple):
    """A field that the definition of a custom kind does not have; the server drops it."""

    path: str
    name: str
    known: Collection[str]
    """The fields beside it."""


class FaultsOfNew(NamedTuple):
    errors: list[FieldError]
    unknown: list[UnknownField]


class _CustomKind(NamedTuple):
    schema: Schema
    strategy: CustomStrategy


def new_object_faults(written: Obj) -> FaultsOfNew:
    """Nothing for a kind that is not known."""
    kind = _kind_of(written)
    builtin = _builtin().get(kind)
    if builtin is not None:
        return FaultsOfNew(_builtin_errors(written, builtin), [])
    custom = _custom(kind[0]).get(kind)
    return FaultsOfNew([], []) if custom is None else _custom_faults(written, custom)


def served_versions(group: str) -> dict[str, list[str]]:
    """The kinds of a group of another project, with their versions; empty for a group that is not known."""
    found: dict[str, list[str]] = {}
    for _, version, name in _custom(group):
        found.setdefault(name, []).append(version)
    return found


def job_errors(template: Obj) -> list[FieldError]:
    """Of the template of a Job in an object of another project; the paths begin at the spec."""
    spec = deepcopy(template.get("spec"))
    pod = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(pod, dict) and isinstance(pod.get("spec"), dict):
        # The webhook of JobSet fills it in.
        pod["spec"].setdefault("restartPolicy", "OnFailure")
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": spec}
    return _of_template(_builtin_errors(job, _builtin()[_JOB]))


def _of_template(errors: Iterable[FieldError]) -> list[FieldError]:
    """Without mounts of volumes that are not there: controllers add those of their claims."""
    return [each for each in errors if each.field.startswith("spec.") and each.reason != "FieldValueNotFound"]


def is_builtin(obj: Obj) -> bool:
    """Whether it is a kind of Kubernetes itself."""
    return _kind_of(obj) in _builtin()


def pod_spec_errors(spec: Obj, labels: Obj) -> list[FieldError]:
    """Of a template in an object of another project; the paths begin at the spec.

    Controllers name containers and set restart policies, so that a template may lack them.
    """
    filled = deepcopy(spec)
    for field in ("containers", "initContainers"):
        found = filled.get(field)
        for at, container in enumerate(found if isinstance(found, list) else ()):
            if isinstance(container, dict):
                container.setdefault("name", f"{field.lower()}-{at}")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "labels": labels}, "spec": filled}
    return _of_template(_builtin_errors(pod, _builtin()[_POD]))


def _builtin_errors(written: Obj, resource: Resource) -> list[FieldError]:
    obj, strategy = _as_sent(written, is_namespaced=resource.namespaced), resource.strategy
    if obj is None:
        return []
    try:
        read(obj, resource.schema)
    except UndecodableError as error:
        return [FieldError("FieldValueInvalid", error.text(), ".".join(reversed(error.path)))]
    strategy.default(obj)
    fill(obj, resource.schema)
    strategy.prepare_create(obj)
    return [
        *check_metadata(obj, namespaced=resource.namespaced, name_fault=strategy.name_fault),
        *strategy.validate(obj),
    ]


def _custom_faults(written: Obj, custom: _CustomKind) -> FaultsOfNew:
    obj = _as_sent(written, is_namespaced=False)
    if obj is None:
        return FaultsOfNew([], [])
    unknown = list(_unknown(obj, custom.schema, ""))
    try:
        conform_custom(obj, custom.schema)
    except ApiError:
        return FaultsOfNew([], unknown)
    custom.strategy.default(obj)
    return FaultsOfNew(custom.strategy.validate(obj), unknown)


def _unknown(value: Any, schema: Schema, path: str) -> Iterator[UnknownField]:
    if isinstance(value, list) and schema.items is not None:
        for at, item in enumerate(value):
            yield from _unknown(item, schema.items, f"{path}[{at}]")
    elif isinstance(value, dict):
        for key, held in value.items():
            here = f"{path}.{key}" if path else str(key)
            shape = schema.properties.get(key, schema.values)
            if shape is not None:
                yield from _unknown(held, shape, here)
            elif not schema.keeps_unknown:
                yield UnknownField(here, str(key), schema.properties)


def _as_sent(written: Obj, *, is_namespaced: bool) -> Obj | None:
    """A copy with what a server sets; None if the metadata is no map."""
    obj = deepcopy(written)
    metadata = obj.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        return None
    if is_namespaced:
        metadata.setdefault("namespace", "default")
    else:
        metadata.pop("namespace", None)
    metadata.setdefault("uid", _SUFFIX)
    prefix = metadata.get("generateName")
    if isinstance(prefix, str) and prefix and not metadata.get("name"):
        metadata["name"] = prefix + _SUFFIX
    return obj


def _kind_of(obj: Obj) -> Kind:
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    return group, version, str(obj.get("kind") or "")


@cache
def _builtin() -> dict[Kind, Resource]:
    resources = builtin_resources(published(NEWEST), {**STRATEGIES, _DEFINITION: DEFINITIONS})
    return {(each.group, each.version, each.kind): each for each in resources}


@cache
def _custom(group: str) -> dict[Kind, _CustomKind]:
    """The kinds of a group. Only its own table is read: all of them take a while."""
    found: dict[Kind, _CustomKind] = {}
    for name, text in _tables().items():
        if group and group in text:
            for definition in definitions_of(name, read_table(name, text)):
                if definition["spec"]["group"] == group:
                    found.update(_kinds_of(definition))
    return found


def _kinds_of(definition: Obj) -> Iterable[tuple[Kind, _CustomKind]]:
    spec = definition["spec"]
    for version in spec["versions"]:
        shape = version["schema"]["openAPIV3Schema"]
        kind = (spec["group"], version["name"], spec["names"]["kind"])
        yield kind, _CustomKind(schema_of(shape), CustomStrategy(definition, version, shape))


@cache
def _tables() -> dict[str, str]:
    folder = files("shoal.embedded.apiserver.foreign") / "kinds"
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(".yaml")}

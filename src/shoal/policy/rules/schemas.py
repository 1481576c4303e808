"""Compares objects of files with the fields of Kubernetes' own kinds, and pod templates in objects of other projects.

`kubectl apply` refuses unknown fields, but clients that do not ask for it get the object without them, and pod
templates in custom resources lose them without a word. The fields are those of the newest release that Shoal knows; a
version of a kind that it does not have may be served elsewhere, so only its absence from all releases is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, Final

from shoal.api.names import object_name_fault
from shoal.data.kubernetes_schemas import MINORS, NEWEST, StoredDefinition, StoredField, definitions
from shoal.policy.advice import Advice, Correction, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.object_set import kind_of
from shoal.policy.pod_templates import pod_templates
from shoal.units.near_texts import nearest_name

_JOB_TEMPLATE: Final = "io.k8s.api.batch.v1.JobTemplateSpec"
_POD_SPEC: Final = "io.k8s.api.core.v1.PodSpec"
_TYPES: Final[dict[str, tuple[type | tuple[type, ...], str]]] = {
    "string": (str, "text"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "a map"),
}
_WORDS: Final = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a map",
}
_MOST: Final = 20
"""Faults of one object that are reported."""
_DEEPEST: Final = 60
_REMOVED: Final = "it was removed from Kubernetes"
_SERVED_LATER: Final = {
    ("extensions", "Deployment"): "apps/v1",
    ("extensions", "DaemonSet"): "apps/v1",
    ("extensions", "ReplicaSet"): "apps/v1",
    ("extensions", "Ingress"): "networking.k8s.io/v1",
    ("extensions", "NetworkPolicy"): "networking.k8s.io/v1",
    ("policy", "PodSecurityPolicy"): "",
}


@check(
    Rule(
        "SHL-107",
        "UnknownKubernetesField",
        "error",
        fault="a field is not one of Kubernetes",
        effect="the object is refused, or the field is dropped without a message",
        fix="write the field as `kubectl explain` names it, at its level",
        links=("https://kubernetes.io/docs/reference/kubernetes-api/",),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - {name: main, image: "registry.example/train:1.4", imagePullPolcy: Always}
""",
        changes=(Change("imagePullPolcy", "imagePullPolicy"),),
    ),
    Rule(
        "SHL-108",
        "WrongType",
        "error",
        fault="a field has a value of another type",
        effect="the API server refuses the object",
        fix="write the type that the field has: numbers without quotes, texts with them, lists with dashes",
        links=("https://kubernetes.io/docs/reference/kubernetes-api/",),
        bad="""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: "2"
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec: {containers: [{name: main, image: "registry.example/serve:1.4"}]}
""",
        changes=(Change('"2"', "2"),),
    ),
    Rule(
        "SHL-109",
        "MissingField",
        "error",
        fault="a required field is absent",
        effect="the API server refuses the object",
        fix="set the field",
        links=("https://kubernetes.io/docs/reference/kubernetes-api/",),
        bad="""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: serve}}
    spec: {containers: [{name: main, image: "registry.example/serve:1.4"}]}
""",
        changes=(
            Change(
                """\
replicas: 2
""",
                """\
replicas: 2
  selector: {matchLabels: {app: serve}}
""",
            ),
        ),
    ),
    options=CheckOptions(in_files=True),
)
def kubernetes_fields(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    yield from _faults(obj)


@check(
    Rule(
        "SHL-111",
        "InvalidName",
        "error",
        fault="an object has a name that Kubernetes does not allow",
        effect="the API server refuses the object",
        fix="use lower-case letters, digits and dashes",
        links=("https://kubernetes.io/docs/concepts/overview/working-with-objects/names/",),
        bad="""\
apiVersion: v1
kind: ConfigMap
metadata: {name: Train_Settings}
data: {batch: "8"}
""",
        changes=(Change("Train_Settings", "train-settings"),),
    ),
    options=CheckOptions(in_files=True),
)
def object_names(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Without those of roles and definitions, which may have other characters."""
    meta = string_keys(obj.get("metadata"))
    for field in ("name", "namespace"):
        name = meta.get(field)
        if isinstance(name, str) and name and kind_of(obj).group != "rbac.authorization.k8s.io":
            fault = object_name_fault(name)
            if fault:
                yield Advice("InvalidName", f"metadata.{field}", f'"{name}" is refused: {fault}', "choose another name")


@check(
    Rule(
        "SHL-110",
        "UnknownKind",
        "error",
        fault="no release of Kubernetes has the kind in this version",
        effect="no API server has the kind in this version",
        fix="write the version that serves the kind; `kubectl api-resources` lists them",
        links=("https://kubernetes.io/docs/reference/using-api/deprecation-guide/",),
        bad="""\
apiVersion: apps/v1beta2
kind: Deployment
metadata: {name: serve}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec: {containers: [{name: main, image: "registry.example/serve:1.4"}]}
""",
        changes=(Change("apps/v1beta2", "apps/v1"),),
    ),
    options=CheckOptions(in_files=True),
)
def kubernetes_kinds(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    kind = kind_of(obj)
    written = str(obj.get("apiVersion") or "")
    version = written.rpartition("/")[2]
    if (kind.group, kind.name) in _SERVED_LATER:
        later = _SERVED_LATER[(kind.group, kind.name)]
        fix = f"write {later}" if later else "use the labels of Pod Security admission"
        yield Advice("UnknownKind", "apiVersion", f"{kind.name} of {written}: {_REMOVED}", fix)
        return
    served = _served()
    if kind.group not in served or (version, kind.name) in served[kind.group]:
        return
    names = {name for _, name in served[kind.group]}
    if kind.name in names:
        versions = sorted(version for version, name in served[kind.group] if name == kind.name)
        group = f"{kind.group}/" if kind.group else ""
        fix = f"write {' or '.join(group + version for version in versions)}"
        yield Advice("UnknownKind", "apiVersion", f"{written} has no {kind.name} in Kubernetes 1.34 or later", fix)
        return
    elsewhere = sorted(
        f"{group}/{version}" if group else version
        for group, kinds in served.items()
        for version, name in kinds
        if name == kind.name
    )
    if elsewhere:
        yield Advice("UnknownKind", "apiVersion", f"{written} has no {kind.name}", f"write {elsewhere[0]}")
        return
    near = nearest_name(kind.name, names)
    fix = f"did you mean {near}?" if near else "compare `kubectl api-resources`"
    correction = Correction(value=near) if near else None
    yield Advice("UnknownKind", "kind", f"{written} has no kind {kind.name}", fix, correction)


def field_faults(obj: Obj) -> frozenset[str]:
    """The paths of the fields that these rules report."""
    return frozenset(advice.path for advice in _faults(obj))


def _faults(obj: Obj) -> Iterator[Advice]:
    name = _definition_of(obj)
    found = _templates(obj) if name is None else _struct(obj, definitions(NEWEST)[name], "", (), _DEEPEST)
    return islice(found, _MOST)


def _templates(obj: Obj) -> Iterator[Advice]:
    """Fields of pods in objects of other projects. Workflows and InferenceServices mix them with their own."""
    if obj.get("kind") in ("Workflow", "InferenceService", "Pipeline", "Task"):
        return
    known = definitions(NEWEST)[_POD_SPEC]
    if obj.get("kind") == "JobSet":
        # Its templates are those of Jobs, which have the pod's fields in them.
        for at, job in enumerate(maps(dig(obj, "spec", "replicatedJobs"))):
            if isinstance(template := job.get("template"), dict):
                path = f"spec.replicatedJobs[{at}].template"
                yield from _struct(template, definitions(NEWEST)[_JOB_TEMPLATE], path, (), _DEEPEST)
        return
    for template in pod_templates(obj):
        if isinstance(template.spec.get("containers"), list):
            yield from _struct(template.spec, known, template.path, (), _DEEPEST)


def _struct(
    value: Obj, definition: StoredDefinition, path: str, above: tuple[StoredDefinition, ...], depth: int
) -> Iterator[Advice]:
    if not depth:
        return
    inside = (*above, definition)
    for key, one in value.items():
        here = _below(path, str(key))
        field = definition.fields.get(str(key))
        if field is None:
            yield _unknown(here, str(key), definition, above)
        elif one is not None:
            yield from _value(one, field, here, inside, depth - 1)
    for name in definition.required:
        if value.get(name) is None and not _may_be_absent(definition, name):
            yield Advice("MissingField", _below(path, name), "is required", f"set {name}")


def _value(
    value: Any, field: StoredField, path: str, above: tuple[StoredDefinition, ...], depth: int
) -> Iterator[Advice]:
    if field.ref:
        definition = definitions(NEWEST)[field.ref]
        if not definition.fields:
            return
        if isinstance(value, dict):
            yield from _struct(value, definition, path, above, depth)
        else:
            yield _type_fault(path, value, "a map")
        return
    expected, words = _TYPES.get(field.type, (object, ""))
    is_right = isinstance(value, expected) and (isinstance(value, bool) == (field.type == "boolean") or not words)
    if not is_right:
        yield _type_fault(path, value, words)
    elif isinstance(value, list) and field.items is not None:
        for at, inner in enumerate(value):
            yield from _value(inner, field.items, f"{path}[{at}]", above, depth - 1)
    elif isinstance(value, dict) and field.values is not None:
        for key, inner in value.items():
            if inner is not None:
                yield from _value(inner, field.values, _below(path, str(key)), above, depth - 1)


def _type_fault(path: str, value: Any, expected: str) -> Advice:
    what = f"expected {expected}, got {_WORDS.get(type(value), 'another type')}"
    correction = None
    if expected == "text" and isinstance(value, bool | int | float):
        fix = "put it in quotes"
        # A float and a truth value may be written in several ways, of which this is one.
        correction = Correction(value=f'"{value}"', only_of=str(value)) if type(value) is int else None
    elif expected == "a list" and not isinstance(value, list):
        fix = "write it as an item of a list, with a dash"
    elif isinstance(value, str) and expected in ("a whole number", "true or false"):
        fix = "remove the quotes"
        is_plain = value.isascii() and (
            value.isdecimal() if expected == "a whole number" else value in ("true", "false")
        )
        correction = Correction(value=value) if is_plain and not value.startswith("0") else None
    else:
        fix = "correct the value"
    return Advice("WrongType", path, what, fix, correction)


def _unknown(path: str, name: str, definition: StoredDefinition, above: tuple[StoredDefinition, ...]) -> Advice:
    what = "is not a field of Kubernetes here: it is refused, or dropped without a message"
    near = nearest_name(name, definition.fields)
    if near:
        return Advice("UnknownKubernetesField", path, what, f"did you mean {near}?", Correction(key=near))
    if any(name in outer.fields for outer in above):
        return Advice("UnknownKubernetesField", path, what, f"{name} belongs to an outer level: check the indentation")
    inner = [
        key for key, field in definition.fields.items() if field.ref and name in definitions(NEWEST)[field.ref].fields
    ]
    fix = f"{name} belongs into {inner[0]}" if inner else "remove it, or compare `kubectl explain`"
    return Advice("UnknownKubernetesField", path, what, fix)


def _may_be_absent(definition: StoredDefinition, name: str) -> bool:
    """Whether the server fills the field in, or checks it with words of its own that another rule has."""
    field = definition.fields[name]
    return bool(field.ref) and not definitions(NEWEST)[field.ref].required and field.zero == "fill"


def _below(path: str, key: str) -> str:
    if not path:
        return key
    return f"{path}.{key}" if key.replace("_", "").isalnum() else f"{path}[{key}]"


def _definition_of(obj: Obj) -> str | None:
    kind = kind_of(obj)
    return _by_kind().get((kind.group, str(obj.get("apiVersion")).rpartition("/")[2], kind.name))


@cache
def _by_kind() -> dict[tuple[str, str, str], str]:
    return {kind: name for name, each in definitions(NEWEST).items() for kind in each.kinds}


@cache
def _served() -> dict[str, frozenset[tuple[str, str]]]:
    """The versions and kinds of each group of Kubernetes, of all releases that Shoal knows."""
    found: dict[str, set[tuple[str, str]]] = {}
    for minor in MINORS:
        for each in definitions(minor).values():
            for group, version, name in each.kinds:
                found.setdefault(group, set()).add((version, name))
    return {group: frozenset(kinds) for group, kinds in found.items()}

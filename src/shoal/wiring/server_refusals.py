"""What an API server would refuse about objects of files, or drop from them, as advice for `shoal lint`.

The validation is that of the embedded cluster, so that files are refused for the same reasons as there.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.new_object_faults import (
    UnknownField,
    is_builtin,
    job_errors,
    new_object_faults,
    pod_spec_errors,
    served_versions,
)
from shoal.policy.advice import Advice, Correction, Obj
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.pod_templates import pod_templates
from shoal.units.near_texts import nearest_name

_MOST = 20
"""Of one object."""
_WITH_OWN_FIELDS = ("Workflow", "InferenceService", "Pipeline", "Task")
"""Kinds that have fields of their own inside of their pod templates."""
_MOST_LETTERS = 2
"""By which a misspelled kind is longer or shorter: newer releases have kinds with longer names."""
_SUPPORTED = "supported values: "


def server_refusals(obj: Obj) -> Iterator[Advice]:
    yield from _unknown_kind(obj)
    faults = new_object_faults(obj)
    for unknown in faults.unknown[:_MOST]:
        yield _dropped(unknown)
    yield from _refused(faults.errors)
    if obj.get("kind") == "JobSet":
        for at, job in enumerate(maps(dig(obj, "spec", "replicatedJobs"))):
            path = f"spec.replicatedJobs[{at}].template.spec"
            yield from _refused(job_errors(string_keys(job.get("template"))), path)
    elif not is_builtin(obj) and obj.get("kind") not in _WITH_OWN_FIELDS:
        for template in pod_templates(obj):
            yield from _refused(pod_spec_errors(template.spec, template.labels), template.path)


def _unknown_kind(obj: Obj) -> Iterator[Advice]:
    """Of the projects whose kinds Shoal provides."""
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    kinds, kind = served_versions(group), str(obj.get("kind") or "")
    if kind in kinds and version not in kinds[kind]:
        versions = " or ".join(f"{group}/{each}" for each in kinds[kind])
        what = f"no release that Shoal knows has {kind} in {version}"
        yield Advice("UnknownKind", "apiVersion", what, f"write {versions}")
    near = nearest_name(kind, kinds) if kind not in kinds else ""
    if near and abs(len(near) - len(kind)) <= _MOST_LETTERS:
        yield Advice(
            "UnknownKind", "kind", f"{group} has no kind {kind}", f"did you mean {near}?", Correction(value=near)
        )


def _dropped(field: UnknownField) -> Advice:
    near = nearest_name(field.name, field.known)
    fix = f"did you mean {near}?" if near else "remove it, or compare `kubectl explain`"
    what = "is not a field here in the releases that Shoal knows: it is refused, or dropped without a message"
    return Advice("UnknownField", field.path, what, fix, Correction(key=near) if near else None)


def _refused(errors: list[FieldError], pod_spec: str = "") -> Iterator[Advice]:
    """`pod_spec`: the path of the pod's spec that was checked."""
    for error in [each for each in errors if not _is_placeholder(each)][:_MOST]:
        near = _near_value(error)
        path = pod_spec + error.field.removeprefix("spec") if pod_spec else error.field or "metadata"
        fix = f"did you mean {near}?" if near else "correct the field"
        yield Advice(
            "InvalidObject", path, f"is refused: {error.body()}", fix, Correction(value=near) if near else None
        )


def _near_value(error: FieldError) -> str:
    if not isinstance(error.value, str) or not error.detail.startswith(_SUPPORTED):
        return ""
    allowed = error.detail.removeprefix(_SUPPORTED).replace('"', "").split(", ")
    return next((each for each in allowed if each.lower() == error.value.lower()), nearest_name(error.value, allowed))


def _is_placeholder(error: FieldError) -> bool:
    """Whether the value is filled in by a program such as envsubst before the file is applied."""
    return isinstance(error.value, str) and "$" in error.value
